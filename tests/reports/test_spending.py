"""Tokens, cost and time per result, against hand-computed numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from arena.reports.groups import Group, groups
from arena.reports.pages import write_report
from arena.reports.rows import trial_rows
from arena.reports.session_views import sessions_frame, sessions_views
from arena.reports.spending import best_so_far_mean, first_correct_s
from arena.results.session import Session, Tokens
from arena.results.verdict import Status
from arena.runs.records import RunRecords

from . import builders as b

NEVER = b.session(b.evaluated(1, None))


def with_sessions(speedups: Sequence[float | None], sessions: Sequence[Session | None]) -> RunRecords:
    """One task per speedup, each with a session; None fails."""
    run = b.simple(speedups)
    trials = [replace(trial, session=session) for trial, session in zip(run.trials, sessions, strict=True)]
    return replace(run, trials=tuple(trials))


def overall(run: RunRecords) -> Group:
    return groups(trial_rows([run]))[0]


def value(found: Group, name: str) -> float:
    quantity = found.mean[name]
    assert quantity is not None
    return quantity.value


def test_totals_per_solved_task_hold_what_failures_cost() -> None:
    """Four sessions of 49,500 tokens and half a dollar solve two tasks, with 4× and 0.5×: two doublings."""
    found = overall(with_sessions([4.0, 0.5, None, None], [b.session()] * 4))
    assert value(found, "tokens_per_solved") == 4 * 49_500 / 2
    assert value(found, "cost_per_solved") == 4 * 0.5 / 2
    assert value(found, "cost_per_doubling") == pytest.approx(4 * 0.5 / 2)
    quantity = found.mean["cost_per_solved"]
    assert quantity is not None
    assert (quantity.count, quantity.low) == (2, None), "a draw of four tasks may hold none that is solved"


def test_a_total_with_an_interval() -> None:
    found = overall(with_sessions([2.0] * 9 + [None], [b.session()] * 10)).mean["cost_per_solved"]
    assert found is not None
    assert found.value == pytest.approx(5 / 9)
    assert found.low is not None
    assert found.high is not None
    assert found.low == pytest.approx(0.5)
    assert 5 / 8 <= found.high <= 1


def test_a_cost_that_is_known_in_part_is_none() -> None:
    unknown = replace(b.session(), cost_usd=0.0, tokens=Tokens())
    run = with_sessions([4.0, 2.0], [b.session(), unknown])
    found = overall(run)
    names = ("tokens_per_solved", "cost_per_solved", "cost_per_doubling")
    assert [found.mean[name] for name in names] == [None] * 3
    assert (found.counts.sessions, found.counts.cost_known, found.counts.tokens_known) == (2, 1, 1)
    (view,) = sessions_views(trial_rows([run]))
    assert (view.cost, view.tokens) == ("$0.50 [known in 1 of 2]", "49.5k [known in 1 of 2]")
    nobody = overall(with_sessions([None], [b.session()]))
    assert [nobody.mean[name] for name in names] == [None] * 3, "nothing was solved"


def test_the_first_correct_kernel() -> None:
    """A wrong one after one minute, a right one after two; a right one without a valid timing counts."""
    session = b.session(b.evaluated(1, None), b.evaluated(2, 1.5), b.evaluated(3, 2.0))
    assert first_correct_s(session) == 120
    assert first_correct_s(b.session(replace(b.evaluated(1, None), status=Status.IMPLAUSIBLE))) == 60
    assert first_correct_s(NEVER) is None


def test_the_median_counts_sessions_that_never_had_one_as_longer_than_any() -> None:
    """After 60 s, after 180 s and never: 180 s. With another that never had one there is no median."""
    sessions = [b.session(b.evaluated(place)) for place in (1, 3)] + [NEVER]
    run = with_sessions([1.0, 1.0, None], sessions)
    found = overall(run)
    assert value(found, "first_correct_s") == 180
    assert (found.counts.sessions, found.counts.never_correct) == (3, 1)
    assert sessions_views(trial_rows([run]))[0].first_correct == "1:00 to 3:00 [never in 1 of 3]"
    assert overall(with_sessions([1.0, 1.0, None, None], [*sessions, NEVER])).mean["first_correct_s"] is None
    assert overall(b.simple([1.0])).mean["first_correct_s"] is None


def test_the_best_so_far_over_a_session() -> None:
    """Ten minutes: 1 until 2 min, 2 until 5 min, a slower one at 4 min, then 8: (3 × log 2 + 5 × log 8) / 10."""
    points = [b.evaluated(1, None), b.evaluated(2, 2.0), b.evaluated(4, 1.5), b.evaluated(5, 8.0)]
    expected = math.exp((3 * math.log(2) + 5 * math.log(8)) / 10)
    assert best_so_far_mean(b.session(*points)) == pytest.approx(expected)
    assert best_so_far_mean(b.session(*reversed(points))) == pytest.approx(expected)
    assert best_so_far_mean(NEVER) == 1
    assert best_so_far_mean(b.session(b.evaluated(20, 8.0))) == 1, "after the end"
    assert best_so_far_mean(replace(NEVER, active_s=0.0)) is None
    found = overall(with_sessions([8.0, None], [b.session(*points), NEVER]))
    assert value(found, "best_so_far") == pytest.approx(math.sqrt(expected))


def test_sessions_state_both(tmp_path: Path) -> None:
    run = with_sessions([1.0], [b.session(b.evaluated(2, 2.0))])
    line = sessions_frame(trial_rows([run])).iloc[0]
    assert (line["first_correct_s"], line["best_so_far"]) == (120, pytest.approx(2 ** (8 / 10)))
    page = write_report([run], tmp_path).index.read_text()
    assert ">First correct</th>" in page
    assert '<code class="range">tokens_per_solved</code>' in page
