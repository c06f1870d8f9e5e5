"""One stored evaluation earns the same reward through every adapter, in each scheme.

Adapters whose package is missing are skipped; `tools/external.sh NAME` runs them in an environment that has it.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from arena import Client
from arena.integrations.asking import RewardScheme, facts
from arena.integrations.harbor.folder import CLIENT
from arena.integrations.inspect_values import values_of
from arena.integrations.tracking import point
from arena.reports.measures import bounded
from arena.reports.rows import trial_rows
from arena.results.outcome import Outcome
from arena.results.record import CaseTiming, Split, Trial
from arena.runs.records import RunRecords, read_run
from arena.runs.serve.views import Final
from tests import stored
from tests.stored import OUTCOMES, TASK

STORED = stored.read()
LEVELS = {"wrong": -2.0, "wrong_unseen": -2.0, "compile_error": -5.0, "cheat": -2.0, "nothing": -6.0}


class Served(NamedTuple):
    """A server of the stored evaluations, and its run folder."""

    address: str
    token: str
    run: Path

    def finished(self, kernel: str | None, agent: str = "client") -> Final:
        """Return the final verdict on a kernel, in an episode of its own."""
        with Client(self.address, self.token) as client:
            final: Final = client.finish(client.begin(TASK, agent=agent).episode, kernel)
            return final


Adapter = Callable[[Served, RewardScheme, str | None], float]
"""Returns the reward of a kernel, None: nothing is handed in."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("stored")
    with stored.serving(root) as serving:
        yield Served(serving.address, serving.token, root / "run")


def harbor(server: Served, scheme: RewardScheme, kernel: str | None) -> float:
    """`reward.json` has the bounded reward; the dense one is in the verdict beside it."""
    folder = server.run.parent / "container"
    folder.mkdir(exist_ok=True)
    file = folder / "kernel.py"
    file.unlink(missing_ok=True)
    if kernel is not None:
        file.write_text(kernel, encoding="utf-8")
    command = [sys.executable, "-Es", str(CLIENT), "verify", TASK, str(file), str(folder)]
    subprocess.run(command, env={"ARENA_URL": server.address, "ARENA_TOKEN": server.token}, check=True, timeout=60)
    name = "reward.json" if scheme is RewardScheme.BOUNDED else "verdict.json"
    return float(json.loads((folder / name).read_text(encoding="utf-8"))["reward"])


def inspect_values(server: Served, scheme: RewardScheme, kernel: str | None) -> float:
    return values_of(facts(server.finished(kernel)))[scheme.field]


def inspect(server: Served, scheme: RewardScheme, kernel: str | None) -> float:
    """By the scorer of the task, which needs Inspect."""
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`; run tools/external.sh inspect")
    from inspect_ai.model import ModelName
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    from arena.integrations import inspect_tasks

    final = facts(server.finished(kernel))
    state = TaskState(ModelName("mockllm/model"), 1, 1, "", [], store={inspect_tasks._FINAL: final})
    score = asyncio.run(inspect_tasks.verdict()(state, Target("")))
    return float(score.value[scheme.field])


def verifiers(server: Served, scheme: RewardScheme, kernel: str | None) -> float:
    """By the tools and the task of a rollout."""
    vf = pytest.importorskip("verifiers.v1", reason="needs its package; run tools/external.sh verifiers")
    from unseen_arena_env.servers.tool import ArenaToolset
    from unseen_arena_env.taskset import ArenaTask, ArenaTaskConfig

    async def rollout() -> float:
        tools = ArenaToolset(vf.SharedToolsetConfig())
        await tools.setup()
        trace = SimpleNamespace(state=tools.state)
        task = ArenaTask(vf.TaskData(id=TASK, name=TASK, prompt=""), ArenaTaskConfig(reward=scheme.value))
        async with tools._exit_stack:
            await task.setup(trace, None)
            if kernel is not None:
                await tools.finish(kernel)
            await task.finalize(trace, None)
            return float(await task.reward(trace))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENA_URL", server.address)
        patch.setenv("ARENA_TOKEN", server.token)
        return asyncio.run(rollout())


def openreward(server: Served, scheme: RewardScheme, kernel: str | None) -> float:
    """The rewards of a session add up to the same, whether or not the kernel was evaluated before `finish`."""
    pytest.importorskip("openreward", reason="needs the extra `openreward`; run tools/external.sh openreward")
    from arena.integrations.openreward_server import FinishInput, KernelInput, environment_of

    environment = environment_of(server.address, server.token, "agent", scheme)

    async def session_of(evaluates: bool) -> float:
        session = environment({"task": TASK})
        await session.setup()
        rewards = [(await session.run_kernel(KernelInput(kernel=kernel))).reward] if evaluates else []
        rewards.append((await session.finish(FinishInput(kernel=kernel))).reward)
        await session.teardown()
        return math.fsum(rewards)

    at_once = asyncio.run(session_of(evaluates=False))
    assert kernel is None or asyncio.run(session_of(evaluates=True)) == pytest.approx(at_once)
    return at_once


def mcp(server: Served, scheme: RewardScheme, kernel: str | None) -> float:
    """The structured content of `finish`, which `evaluate` has to agree with unless unseen cases fail."""
    pytest.importorskip("mcp.server.mcpserver", reason="needs the extra `mcp`; run tools/external.sh mcp")
    from tests.external import test_mcp
    from tests.external.conftest import Address

    tools = ["finish"] if kernel is None else ["evaluate", "finish"]
    given = {"task": TASK} if kernel is None else {"task": TASK, "kernel": kernel}
    answers: list[dict[str, Any]] = []

    async def talk(client: Any) -> None:
        answers.extend([await test_mcp.call(client, tool, **given) for tool in tools])

    attempt = len(read_run(server.run).trials)  # another number is another episode
    test_mcp.in_process(Address(server.address, server.token), talk, attempt)
    final = answers[-1]
    assert final["outcome"] == Outcome.OVERFIT or all(one[scheme.field] == final[scheme.field] for one in answers)
    return float(final[scheme.field])


def recorded(server: Served, kernel: str | None) -> tuple[RunRecords, Trial]:
    """Return the record of an episode of its own, and its run."""
    agent = f"recorded-{len(read_run(server.run).trials)}"
    server.finished(kernel, agent)
    run = read_run(server.run)
    return run, next(trial for trial in run.trials if trial.agent == agent)


def tracker(server: Served, scheme: RewardScheme, kernel: str | None) -> float:
    trial = recorded(server, kernel)[1]
    return float(point(trial)[f"{trial.agent}/{scheme.field}"])


def report(server: Served, scheme: RewardScheme, kernel: str | None) -> float:
    run, trial = recorded(server, kernel)
    row = next(row for row in trial_rows([run]) if row.agent == trial.agent)
    value = row.reward if scheme is RewardScheme.DENSE else bounded(row)
    assert value is not None
    return value


ADAPTERS: tuple[Adapter, ...] = (
    harbor, inspect_values, inspect, verifiers, openreward, mcp, tracker, report
)  # fmt: skip


@pytest.mark.parametrize("scheme", RewardScheme)
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)
def test_every_adapter_gives_the_same_reward(server: Served, adapter: Adapter, scheme: RewardScheme) -> None:
    found = {name: adapter(server, scheme, one.kernel) for name, one in STORED.items()}
    assert found == {name: one.expected(scheme) for name, one in STORED.items()}


def test_the_stored_set_is_what_its_names_say() -> None:
    assert list(STORED) == list(OUTCOMES)
    assert {name: why for name, one in STORED.items() if (why := stored.problem(one))} == {}


@pytest.mark.parametrize("one", STORED.values(), ids=list(STORED))
def test_the_server_answers_as_when_it_was_stored(server: Served, one: stored.StoredEvaluation) -> None:
    assert server.finished(one.kernel) == one.final


@pytest.mark.parametrize("one", STORED.values(), ids=list(STORED))
def test_rewards_by_hand(one: stored.StoredEvaluation) -> None:
    """From the raw timings: docs/evaluate/serve.md has the formulas."""
    if not one.final.outcome.solves:
        assert (one.expected("dense"), one.expected("bounded")) == (LEVELS[one.name], 0.0)
        return
    assert one.evaluation is not None
    timings = [case.timing for case in one.evaluation.split(Split.SEEN) if case.timing is not None]
    speedup = geometric_mean(_credit(t) for t in timings)
    assert one.expected("dense") == pytest.approx(speedup - 1) and one.expected("dense") > -1
    assert one.expected("bounded") == pytest.approx(max(0.0, 1 - 1.05 / speedup)) and one.expected("bounded") < 1


def _credit(timing: CaseTiming) -> float:
    """What docs/evaluate/measures.md says that a timing counts as."""
    if not timing.noisy:
        return timing.speedup.value
    vague = timing.speedup.high > 1.5 * timing.speedup.low
    return timing.speedup.low if timing.speedup.low > 1 or vague else min(1.0, timing.speedup.value)
