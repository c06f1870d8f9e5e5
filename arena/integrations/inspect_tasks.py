"""Tasks for Inspect AI, clients of `arena serve`: `inspect eval arena/unseen_arena`. docs/evaluate/frameworks.md.

Imported by Inspect through its entry point, in an environment without PyTorch. $ARENA_URL and $ARENA_TOKEN say where
the judge is; they are no parameters of the task, since a log stores those.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import TypeVar

from inspect_ai import Task, task
from inspect_ai.agent import AgentSubmit, react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolError, tool
from inspect_ai.util import store

from arena.agents.chat.prompt import with_files
from arena.api.client import AsyncClient, Client
from arena.errors import NotServed, UsageError
from arena.integrations.asking import facts, is_refusal, when_free
from arena.integrations.inspect_values import values_of
from arena.runs.serve.views import Final, ServedTask, TaskView

T = TypeVar("T")
VERSION = 1
FAST_P = (0.0, 1.0, 1.5, 2.0)
_EPISODE, _FINAL = "arena_episode", "arena_final"
_HEAD = """\
You write one file, `{kernel}`: a GPU kernel for the task below. The tool `evaluate` takes the complete text of the \
file and answers what the text calls `./evaluate`. The tool `finish` ends the task. The kernel that you give it \
counts, else the fastest one that passed an evaluation.

---

"""


@task
def unseen_arena(tasks: str | list[str] = "*", task_type: str = "", suite: str = "", split: str = "all") -> Task:
    """Optimise GPU kernels with feedback from a judge, scored on seen and held-out cases.

    Args:
        tasks: ids, bare names or globs; `-T tasks=rms_norm,softmax` gives several.
        task_type: `hip2hip`, `triton2triton` or `torch2hip`; empty: all.
        suite: the name of a suite, such as `normalization`; empty: all.
        split: `train`, `evaluation` or `all`.
    """
    with Client(*_server()) as client:
        patterns = tasks.split(",") if isinstance(tasks, str) else tasks
        chosen = [one for one in client.tasks(split) if _matches(one, patterns, task_type, suite)]
        if not chosen:
            raise UsageError(f"the server has no task for tasks={tasks!r} {task_type=} {suite=} {split=}")
        samples = [_sample(one, client.task(one.task)) for one in chosen]
    submit = AgentSubmit(name="finish", tool=finish(), keep_in_messages=True)
    return Task(
        dataset=MemoryDataset(samples, name="unseen_arena"),
        setup=begin(),
        solver=react(tools=[evaluate()], submit=submit),
        scorer=verdict(),
        version=VERSION,
    )


@solver
def begin() -> Solver:
    """Begin an episode for a sample, under the name of the model."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        agent = re.sub(r"[^A-Za-z0-9._-]+", "-", str(get_model())).strip("-._")[:64] or "inspect"
        episode = await _ask(lambda client: client.begin(state.metadata["task"], agent=agent))
        state.store.set(_EPISODE, episode.episode)
        return state

    return solve


@tool
def evaluate() -> Tool:
    """Evaluate a kernel on the seen cases."""

    async def execute(kernel: str) -> str:
        """Compile a kernel, check it on the seen cases and time it against the baseline.

        Args:
            kernel: The complete text of the file.
        """
        episode = store().get(_EPISODE)
        async with _refusals_as_feedback():
            step = await _ask(lambda client: client.evaluate(episode, kernel))
        return f"{step.text.rstrip()}\n\n{step.left} evaluations left."

    return execute


@tool
def finish() -> Tool:
    """Get the final verdict, which ends the task."""

    async def execute(kernel: str = "") -> str:
        """End the task: the final verdict, on this kernel or on the fastest one that passed an evaluation.

        Args:
            kernel: The complete text of the file; empty for the fastest one evaluated.
        """
        async with _refusals_as_feedback():
            final = await _finish(kernel or None)
        return str(final.text)

    return execute


@metric
def gain() -> Metric:
    """Return the geometric mean of speedups, of what is not solved or slower as 1, much as `gain` of reports."""

    def compute(scores: list[SampleScore]) -> float:
        logs = [math.log(max(1.0, one.score.as_float())) for one in scores]
        return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan

    return compute


@metric
def fast_p() -> Metric:
    """Return the shares of samples that are correct and more than p times as fast as the baseline."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        values = [one.score.as_float() for one in scores]
        share = {p: sum(value > p for value in values) / len(values) if values else math.nan for p in FAST_P}
        return {f"{p:g}": value for p, value in share.items()}

    return compute


@scorer(
    metrics={
        "reward": [mean(), stderr()],
        "bounded_reward": [mean(), stderr()],
        "solved": [mean(), stderr()],
        "overfit": [mean(), stderr()],
        "speedup": [gain(), fast_p()],
        "correctness_drop": [mean(), stderr()],
    }
)
def verdict() -> Scorer:
    """Score the final verdict of the judge; a model that never finished gets one on its best kernel.

    A failure of the harness raises, so that the sample has an error and no score.
    """

    async def score(state: TaskState, target: Target) -> Score:
        known = state.store.get(_FINAL)
        final = known if known is not None else facts(await _finish(None))
        return Score(value=values_of(final), explanation=final["text"], metadata={"verdict": final})

    return score


def _matches(one: ServedTask, patterns: Sequence[str], task_type: str, suite: str) -> bool:
    kind, group, name = one.task.split("/")
    named = any(fnmatchcase(text, pattern) for text in (one.task, name) for pattern in patterns)
    return named and task_type in ("", kind) and suite in ("", group)


def _sample(one: ServedTask, view: TaskView) -> Sample:
    files = {name: text for name, text in view.files.items() if not name.endswith("__init__.py")}
    kind, group, _ = one.task.split("/")
    return Sample(
        id=one.task,
        input=_HEAD.format(kernel=view.kernel_file) + with_files(view.text, files),
        metadata={"task": one.task, "task_type": kind, "suite": group, "split": str(one.split), "device": view.device},
    )


async def _finish(kernel: str | None) -> Final:
    episode = store().get(_EPISODE)
    final: Final = await _ask(lambda client: client.finish(episode, kernel))
    store().set(_FINAL, facts(final))
    return final


async def _ask(call: Callable[[AsyncClient], Awaitable[T]]) -> T:
    """Make one call, also where the server is busy. Raises `NotServed` or `ArenaError`."""
    async with AsyncClient(*_server()) as client:
        return await when_free(lambda: call(client))


@asynccontextmanager
async def _refusals_as_feedback() -> AsyncIterator[None]:
    """Tell the model what it asked for in vain; a failure of the harness goes on."""
    try:
        yield
    except NotServed as problem:
        if not is_refusal(problem):
            raise
        raise ToolError(str(problem)) from None


def _server() -> tuple[str, str]:
    """Return address and token of the server. Raises `UsageError`."""
    address = os.environ.get("ARENA_URL", "")
    if not address:
        raise UsageError("ARENA_URL is not set: the address that `arena serve` prints, and its token as ARENA_TOKEN")
    return address, os.environ.get("ARENA_TOKEN", "")
