"""The candidates of the quickstart end as it says: this is what a new user sees first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import arena
from arena.agents import make_agent
from arena.runs.config import find_config, load_config

CONFIG = load_config(find_config("quickstart"))
MOST_WORK = float(str(CONFIG.evaluation["max_work"]))
SETS = tuple(agent.name for agent in CONFIG.agents)


@pytest.fixture(scope="module")
def judge() -> Iterator[arena.Judge]:
    with arena.Judge("cpu") as judge:
        yield judge


def correct(judge: arena.Judge, name: str, candidates: str) -> tuple[bool, bool]:
    """Whether every seen case is right, and every held-out one."""
    task = arena.load_task(name)
    file = make_agent(next(spec for spec in CONFIG.agents if spec.name == candidates)).candidate(task, 1)
    assert file is not None
    result = judge.evaluate(task, file, effort="correctness", max_work=MOST_WORK)
    return result.outcome.right_on_seen, result.solved


def test_it_has_four_sets_of_candidates() -> None:
    assert SETS == ("honest", "fast", "hardcoded", "broken")


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIG.tasks)
def test_candidates_end_as_they_say(judge: arena.Judge, name: str) -> None:
    """Honest and fast ones are right everywhere, hard-coded ones on every seen case alone, broken ones nowhere."""
    assert [correct(judge, name, one) for one in SETS] == [(True, True), (True, True), (True, False), (False, False)]
