"""Points, rewards and the SOL score, against the tables of docs/evaluate/measures.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.reports.measures import MEASURES
from arena.results.reward import REWARDS, bounded_reward, reward
from arena.results.scales import pass_at_k, points, sol_score
from arena.results.verdict import Status

DOCS = (Path(__file__).parents[2] / "docs" / "evaluate" / "measures.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("compiled", "correct", "speedup", "expected"),
    [
        (False, False, None, 0),
        (False, True, 3.0, 0),
        (True, False, None, 20),
        (True, True, None, 120),
        (True, True, 1.5, 270),
    ],
)
def test_points(compiled: bool, correct: bool, speedup: float | None, expected: float) -> None:
    assert points(compiled, correct, speedup) == expected


def test_every_status_has_a_reward_and_only_passing_is_above_minus_two() -> None:
    assert set(REWARDS) == set(Status) - {Status.PASSED}
    assert max(REWARDS.values()) == -2
    assert min(REWARDS.values()) == -7


def test_rewards() -> None:
    assert reward(Status.PASSED, 1.0) == 0
    assert reward(Status.PASSED, 3.0) == 2
    assert reward(Status.PASSED, None) == 0
    assert reward(Status.COMPILE_ERROR, None) == -5
    assert reward(None, None) == -7


@pytest.mark.parametrize("status", REWARDS)
def test_the_docs_place_every_status_at_its_reward(status: Status) -> None:
    line = next(line for line in DOCS.splitlines() if line.startswith(f"| −{-REWARDS[status]:g} |"))
    assert f"`{status}`" in line


@pytest.mark.parametrize("name", [measure.name for measure in MEASURES])
def test_the_docs_define_every_measure(name: str) -> None:
    name = re.sub(r"_at_\d+$", "_at_K", name)
    assert any(line.startswith("|") and f"`{name}`" in line for line in DOCS.splitlines())


@pytest.mark.parametrize(
    ("attempts", "passed", "k", "expected"),
    [(4, 2, 1, 1 / 2), (4, 2, 2, 5 / 6), (4, 1, 2, 1 / 2), (4, 0, 4, 0), (4, 3, 2, 1), (8, 2, 4, 1 - 15 / 70)],
)
def test_pass_at_k(attempts: int, passed: int, k: int, expected: float) -> None:
    """Of the six pairs of four attempts, two of which pass, one pair has none that passes."""
    assert pass_at_k(attempts, passed, k) == pytest.approx(expected)


def test_bounded_reward() -> None:
    assert [bounded_reward(speedup) for speedup in (0.5, 1.0, 1.05)] == [0, 0, 0]
    assert bounded_reward(2.1) == pytest.approx(0.5)
    assert bounded_reward(1e9) == pytest.approx(1)
    assert bounded_reward(None) == 0


def test_sol_score_at_its_anchors() -> None:
    assert sol_score(4.0, 4.0, 1.0) == 0.5
    assert sol_score(1.0, 4.0, 1.0) == 1
    assert sol_score(0.5, 4.0, 1.0) == 1
    assert sol_score(7.0, 4.0, 1.0) == pytest.approx(1 / 3)
    assert sol_score(1.0, 1.0, 1.0) == 1
    assert sol_score(2.0, 1.0, 1.0) == 0


@given(st.floats(0.001, 100), st.floats(0.001, 100), st.floats(0.001, 100))
def test_sol_score_stays_between_zero_and_one(candidate: float, baseline: float, bound: float) -> None:
    assert 0 <= sol_score(candidate, baseline, bound) <= 1
