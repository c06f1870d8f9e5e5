"""The axioms of the order of agents. docs/evaluate/measures.md lists them; each has a test here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.reports.groups import groups
from arena.reports.rows import trial_rows
from arena.reports.standings import RankedGroup, overall, standings
from arena.results.record import Trial
from arena.results.verdict import Status
from tests.reports import builders as b

WRONG, NOTHING, OVERFIT = "wrong", "nothing", "overfit"
Ended = float | str
"""how one trial ended: solved with a speedup, or one of the words above"""
ENDINGS: Final = st.one_of(st.sampled_from([WRONG, NOTHING, OVERFIT]), st.floats(0.2, 8.0))


def trial(agent: str, task: str, ended: Ended) -> Trial:
    if ended == WRONG:
        return b.trial(task, Status.WRONG_RESULT, [b.case(candidate=Status.WRONG_RESULT)], agent=agent)
    if ended == NOTHING:
        return b.trial(task, Status.NOTHING_SUBMITTED, agent=agent)
    if ended == OVERFIT:
        wrong = b.heldout(speedup=None, candidate=Status.WRONG_RESULT)
        return b.trial(task, cases=[b.case("s1", 5.0), wrong], agent=agent)
    assert isinstance(ended, float)
    return b.trial(task, cases=[b.case("s1", ended), b.heldout("h1", ended)], agent=agent)


def places(**agents: Sequence[Ended]) -> list[RankedGroup]:
    trials = [
        trial(agent, f"hip2hip/m/t{place:02d}", ended)
        for agent, endings in agents.items()
        for place, ended in enumerate(endings)
    ]
    rows = trial_rows([b.run(trials)])
    return overall(standings(rows, groups(rows)))


def order(**agents: Sequence[Ended]) -> list[str]:
    return [one.group.agent for one in places(**agents)]


@pytest.mark.parametrize("bad", [WRONG, OVERFIT])
def test_a_wrong_kernel_never_ranks_above_none(bad: str) -> None:
    assert order(a_wrong=[bad, bad], none=[NOTHING, NOTHING]) == ["none", "a_wrong"]
    assert order(a_wrong=[bad, 2.0], none=[NOTHING, 2.0]) == ["none", "a_wrong"]


@pytest.mark.parametrize("bad", [WRONG, OVERFIT, NOTHING])
def test_a_kernel_at_0_99_is_never_below_a_failure(bad: str) -> None:
    assert order(a_bad=[bad, 3.0], slow=[0.99, 3.0]) == ["slow", "a_bad"]
    assert order(a_bad=[bad, bad], slow=[0.99, 0.5]) == ["slow", "a_bad"]


def test_doing_nothing_is_never_ahead_of_an_agent_that_gains() -> None:
    assert order(a_nothing=[1.0] * 4, gains=[WRONG, WRONG, OVERFIT, 1.5]) == ["gains", "a_nothing"]
    assert order(a_nothing=[NOTHING] * 4, gains=[WRONG, WRONG, OVERFIT, 1.5]) == ["gains", "a_nothing"]


@settings(max_examples=40, deadline=None)
@given(st.lists(ENDINGS, min_size=1, max_size=6), st.data())
def test_one_more_solved_and_faster_trial_never_lowers(endings: list[Ended], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(endings) - 1))
    before = endings[place]
    better = list(endings)
    better[place] = max(before, 1.2) if isinstance(before, float) else 1.2
    found = order(a_before=endings, better=better)
    same = endings == better or (isinstance(before, float) and before >= 1.2)
    assert found == ["better", "a_before"] or same


@settings(max_examples=30, deadline=None)
@given(*[st.lists(ENDINGS, min_size=3, max_size=3)] * 3)
def test_the_order_of_two_agents_does_not_depend_on_a_third(
    one: list[Ended], two: list[Ended], three: list[Ended]
) -> None:
    without = order(one=one, two=two)
    assert [agent for agent in order(one=one, two=two, three=three) if agent != "three"] == without


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([WRONG, NOTHING, OVERFIT]), min_size=1, max_size=5))
def test_an_agent_with_nothing_solved_is_never_called_best(endings: list[Ended]) -> None:
    (alone,) = places(alone=endings)
    assert alone.place == 1 and not alone.best


def test_calibration_agents_are_outside_of_every_rank() -> None:
    found = places(expert=[9.0, 9.0], noop=[1.0, 1.0], slow=[0.8, 0.9], wrong=[WRONG, WRONG])
    assert [(one.group.agent, one.rank) for one in found] == [
        ("slow", "1"),
        ("wrong", "2 ≈"),
        ("expert", "–"),
        ("noop", "–"),
    ]


def test_intervals_mark_neighbours_and_do_not_sort() -> None:
    wobbly = [1.6, 1.2, 1.7, 1.3, 1.5, 1.1]
    found = places(a=[1.4] * 6, b=wobbly, far=[3.0] * 6)
    assert [one.rank for one in found] == ["1", "2", "3 ≈"]
    assert [one.group.agent for one in found] == ["far", "a", "b"]
