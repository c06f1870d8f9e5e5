"""An OpenReward (ORS) environment over `arena serve`. Needs the extra `openreward`; used by `arena openreward`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from openreward.environments import Environment, Server, Split, TextBlock, ToolOutput, tool
from pydantic import BaseModel, Field

from arena.api.client import AsyncClient, Client
from arena.errors import NotServed, UsageError
from arena.integrations.asking import RewardScheme, facts, is_refusal, purpose, tasks_by_split, when_free
from arena.results.outcome import Outcome
from arena.runs.serve.views import Final, ServedTask

NAME = "unseen_arena"


class KernelInput(BaseModel):  # type: ignore[misc]  # pydantic is not installed where types are checked
    """Input of `run_kernel`."""

    kernel: str = Field(description="The whole text of the kernel file.")


class FinishInput(BaseModel):  # type: ignore[misc]
    """Input of `finish`."""

    kernel: str | None = Field(None, description="The kernel that counts; without it, the best one so far.")


class UnseenArena(Environment):  # type: ignore[misc]
    """Each session is an episode of its own on the server. `openreward_server` sets the class variables."""

    address: ClassVar[str]
    token: ClassVar[str]
    agent: ClassVar[str]
    scheme: ClassVar[RewardScheme]
    tasks: ClassVar[dict[str, list[ServedTask]]]
    """by split"""

    def __init__(self, task_spec: Any = None, secrets: Any = None) -> None:
        super().__init__(task_spec or {}, secrets or {})
        self._task = str(self.task_spec["task"])
        self._client = AsyncClient(self.address, self.token)
        self._episode = ""
        self._rewarded: dict[str, float] = {}
        """what `run_kernel` gave for each kernel"""

    @classmethod
    def name(cls) -> str:
        """Return the name of the environment."""
        return NAME

    @classmethod
    def list_splits(cls) -> list[Split]:
        """Return a split for each task type and each suite."""
        return [Split(name=name, type=purpose(tasks)) for name, tasks in cls.tasks.items()]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        """Return the tasks of a split."""
        return [facts(task) for task in cls.tasks[split]]

    async def setup(self) -> None:
        """Begin an episode."""
        begun = await when_free(lambda: self._client.begin(self._task, agent=self.agent))
        self._episode = begun.episode

    async def teardown(self) -> None:
        """Close the connection; an episode that is not finished stays open on the server."""
        await self._client.__aexit__(None, None, None)

    async def get_prompt(self) -> list[TextBlock]:
        """Return the task's text, then each of its files."""
        task = await when_free(lambda: self._client.task(self._task))
        files = [TextBlock(text=f"`{name}`:\n\n```\n{text}\n```") for name, text in task.files.items()]
        return [TextBlock(text=task.text), *files]

    @tool  # type: ignore[untyped-decorator]
    async def run_kernel(self, params: KernelInput) -> ToolOutput:
        """Compile a kernel, check it on the seen cases, and time it against the baseline."""
        step = await self._told(lambda: self._client.evaluate(self._episode, params.kernel), self.scheme.of)
        if step.reward is not None:
            self._rewarded[params.kernel] = step.reward
        return step

    @tool(exclusive=True)  # type: ignore[untyped-decorator]
    async def finish(self, params: FinishInput) -> ToolOutput:
        """End the episode with the verdict on this kernel, or on the best one so far, held-out cases included."""

        def earned(final: Final) -> float:
            """Return what `run_kernel` has not given for the kernel that counts: rewards of a session are added up.

            Nothing for one that it has rewarded, unless unseen cases fail: then what it gave is taken back.
            """
            if params.kernel is None:
                given = max(self._rewarded.values(), default=None)
            else:
                given = self._rewarded.get(params.kernel)
            if given is None:
                return self.scheme.of(final)
            return self.scheme.of(final) - given if final.outcome is Outcome.OVERFIT else 0.0

        return await self._told(lambda: self._client.finish(self._episode, params.kernel), earned, True)

    async def _told(
        self, call: Callable[[], Awaitable[Any]], earned: Callable[[Any], float], last: bool = False
    ) -> ToolOutput:
        """Return the server's answer. A refusal is text without a reward; a failure is raised, and earns nothing."""
        try:
            answer = await when_free(call)
        except NotServed as problem:
            if not is_refusal(problem):
                raise
            return ToolOutput(blocks=[TextBlock(text=str(problem))])
        blocks = [TextBlock(text=answer.text)]
        return ToolOutput(blocks=blocks, reward=earned(answer), finished=last, metadata=facts(answer))


def openreward_server(address: str, token: str, agent: str, scheme: RewardScheme) -> Server:
    """Return the ORS server of the tasks that `arena serve` has now; its `app` is an ASGI application.

    Raises:
        ArenaError: the server cannot be reached, or refuses the token.
        UsageError: it serves no task.
    """
    return Server([environment_of(address, token, agent, scheme)])


def environment_of(address: str, token: str, agent: str, scheme: RewardScheme) -> type[UnseenArena]:
    """Return the environment that `openreward_server` serves. Raises `ArenaError` or `UsageError`, as it does."""
    with Client(address, token) as client:
        tasks = tasks_by_split(client.tasks())
    if not tasks:
        raise UsageError(f"{address} serves no task; start `arena serve` with other patterns or another split")
    settings = {"address": address, "token": token, "agent": agent, "scheme": scheme, "tasks": tasks}
    return type(UnseenArena.__name__, (UnseenArena,), {**settings, "__doc__": UnseenArena.__doc__})
