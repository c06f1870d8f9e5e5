"""Tasks of `arena serve`, each rollout an episode; rewards and metrics are those of its final verdict."""

from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Literal

import verifiers.v1 as vf

from arena import AsyncClient, Client
from arena.integrations.asking import RewardScheme, facts, when_free
from unseen_arena_env.connection import ArenaState, server
from unseen_arena_env.servers.tool import ArenaToolset


class ArenaTaskConfig(vf.TaskConfig):
    """Options under `--env.taskset.task.*`."""

    reward: Literal["dense", "bounded"] = "dense"
    agent: str = "verifiers"
    """the agent of the trials, such as a checkpoint"""


class ArenaTask(vf.Task[vf.TaskData, ArenaState, ArenaTaskConfig]):
    """One task; `data.id` is its id."""

    @property
    def key(self) -> str:
        """Return the task's id, which does not change with the text."""
        return str(self.data.id)

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Begin an episode."""
        async with AsyncClient(*server()) as client:
            begun = await when_free(lambda: client.begin(self.key, agent=self.config.agent))
        trace.state.episode = begun.episode

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Get the verdict on the best kernel, unless the model finished by itself.

        Raises:
            RuntimeError: the last call of a tool got no verdict. The model is not to blame, so there is no reward.
        """
        if trace.state.failure:
            raise RuntimeError(trace.state.failure)
        if trace.state.final is None:
            async with AsyncClient(*server()) as client:
                trace.state.final = facts(await when_free(lambda: client.finish(trace.state.episode)))

    @vf.stop
    async def finished(self, trace: vf.Trace) -> bool:
        """End the rollout after the verdict."""
        return trace.state.final is not None

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """Return the reward of the final verdict, in the scheme of the configuration."""
        return RewardScheme(self.config.reward).of(trace.state.final)

    @vf.metric
    async def verdict(self, trace: vf.Trace) -> dict[str, float]:
        """Return whether the kernel is solved or overfit, its speedup on seen cases, and how it did on unseen ones."""
        final = trace.state.final
        found = {name: float(final["outcome"] == name) for name in ("solved", "overfit")}
        if final["speedup"] is not None:
            found["speedup"] = final["speedup"]
        if heldout := final["heldout"]:
            found["heldout_share"] = heldout["passed"] / heldout["cases"]
            if heldout["speedup"] is not None:
                found["heldout_speedup"] = heldout["speedup"]
        return found


class UnseenArenaConfig(vf.TasksetConfig):
    """Options under `--env.taskset.*`."""

    split: Literal["all", "train", "evaluation"] = "all"
    tasks: list[str] = ["*"]  # noqa: RUF012  # pydantic copies it
    """ids or globs"""
    tools: vf.SharedToolsetConfig = vf.SharedToolsetConfig()
    task: ArenaTaskConfig = ArenaTaskConfig()


class UnseenArenaTaskset(vf.Taskset[ArenaTask, UnseenArenaConfig]):
    """The tasks that a server has."""

    def load(self) -> Iterator[ArenaTask]:
        """Yield each task of the split that a pattern matches."""
        with Client(*server()) as client:
            for listed in client.tasks(self.config.split):
                if any(fnmatch(listed.task, pattern) for pattern in self.config.tasks):
                    view = client.task(listed.task)
                    files = "".join(f"\n\n`{name}`:\n\n```\n{text}\n```" for name, text in view.files.items())
                    data = vf.TaskData(id=view.task, name=view.task, prompt=view.text + files)
                    yield ArenaTask(data, self.config.task)

    @classmethod
    def toolsets(cls, config: UnseenArenaConfig) -> list[vf.Toolset]:
        """Return the tools, one server for all rollouts."""
        return [ArenaToolset(config.tools)]
