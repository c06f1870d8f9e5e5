"""The three answers at the top of a report: who is best, by how much, what is lost; each only as sure as the data."""

from __future__ import annotations

from arena.reports.answers import ReportAnswer, answers
from arena.reports.formats import EMULATED
from arena.reports.groups import groups
from arena.reports.rows import trial_rows
from arena.reports.standings import standings
from arena.results.verdict import Status
from arena.runs.records import RunRecords

from . import builders as b

TASKS = [f"hip2hip/m/t{place:02d}" for place in range(12)]


def said(run: RunRecords) -> tuple[ReportAnswer, ...]:
    rows = trial_rows([run])
    return answers(standings(rows, groups(rows)), run.info.environment.device.emulated)


def two(alpha: float, beta: float, *, beta_loses: int = 0, names: tuple[str, str] = ("alpha", "beta")) -> RunRecords:
    trials = []
    for place, task in enumerate(TASKS):
        bad = b.heldout("h2", None, kind="alignment", candidate=Status.WRONG_RESULT)
        wobble = 1 + 0.02 * (place % 3)
        trials.append(b.trial(task, cases=[b.case("s1", alpha * wobble), b.heldout("h1", alpha)], agent=names[0]))
        more = [bad] if place < beta_loses else []
        trials.append(b.trial(task, cases=[b.case("s1", beta), b.heldout("h1", beta), *more], agent=names[1]))
    return b.run(trials)


def test_the_faster_of_two_that_solve_all_is_best_and_the_ratio_has_an_interval() -> None:
    best, much, lost = said(two(2.0, 1.5))
    assert best.lead == "alpha"
    assert best.rest == "It solves 12 of 12 trials: every case is correct, seen and unseen."
    assert much.lead.startswith("2.04× [2.0")
    assert "Over beta, the next: 1.36× [1.3" in much.rest
    assert "no difference" not in much.rest
    assert lost.lead.startswith("0 of 12 trials: 0.0 % [0.0 %, ")


def test_where_the_interval_holds_one_no_difference_is_claimed() -> None:
    best, much, _ = said(two(1.5, 1.52))
    assert best.lead == "alpha, but no difference to beta is shown" or best.lead.startswith("beta, but no difference")
    assert "The interval holds 1×: no difference is shown." in much.rest


def test_speed_that_is_lost_on_unseen_shapes_does_not_make_an_agent_best() -> None:
    """Beta is twice as fast on seen shapes, and wrong on an unseen one of every task."""
    best, _, _ = said(two(1.5, 3.0, beta_loses=12))
    assert best.lead == "alpha", "an agent that solves nothing is behind, not level"
    _, _, lost = said(b.run([trial for trial in two(1.5, 3.0, beta_loses=3).trials if trial.agent == "beta"]))
    assert lost.lead.startswith("3 of 12 trials: 25.0 % [")
    assert "Most often kind alignment: 3 of 3 cases." in lost.rest


def test_an_agent_that_solves_more_but_slower_is_named() -> None:
    trials = [trial for trial in two(3.0, 1.0).trials if trial.agent == "beta" or trial.task < TASKS[9]]
    best, _, _ = said(b.run(trials, tasks=TASKS))
    assert best.rest.endswith("beta solves more, 12, and gains less over all trials.")


def test_calibration_agents_are_the_best_of_nobody() -> None:
    best, much, _ = said(two(2.0, 1.5, names=("expert", "beta")))
    assert best.lead == "beta" and "Not ranked: expert, from the corpus." in best.rest
    assert "Over the expert: 0.7" in much.rest
    alone, much, _ = said(two(2.0, 1.5, names=("expert", "noop")))
    assert alone.lead == "No agent was run." and "expert and noop hand in files of the corpus" in alone.rest
    assert much.lead.startswith("expert: 2.04×"), "what an expert gains is known all the same"


def test_nothing_correct_nothing_timed_nothing_recorded() -> None:
    best, much, lost = said(b.simple([None, None]))
    assert (best.lead, much.lead) == ("None: no trial is solved.", "Not at all.")
    assert best.rest == "Trials ended: 2 failed."
    assert lost.lead == "Not known."
    assert "none was correct on the seen cases" in lost.rest
    assert said(b.run([], tasks=TASKS, agents=["alpha"])) == ()


def test_an_emulation_is_called_one() -> None:
    _, much, _ = said(b.simple([1.5, 2.0], env=b.environment(b.CPU)))
    assert "emulated ratio" in much.rest
    assert EMULATED in much.rest
