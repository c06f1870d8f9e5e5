"""The compact table, the doubts, and the numbers as text."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from arena.cli import render
from arena.reports import formats
from arena.reports.answers import answers
from arena.reports.groups import Group, groups
from arena.reports.intervals import Method, Quantity
from arena.reports.measure import Unit
from arena.reports.pages import write_report
from arena.reports.report_warnings import resume_command, warnings
from arena.reports.rows import TrialRow, trial_rows
from arena.reports.standings import standings
from arena.reports.summary import summary_table
from arena.results.outcome import Outcome
from arena.results.record import Estimate, Trial
from arena.results.verdict import Status

from . import builders as b


def test_summary_of_an_unfinished_run() -> None:
    trials = [
        b.trial("hip2hip/m/a", cases=[b.case("s1", 2.0), b.heldout()]),
        b.trial("hip2hip/m/b", Status.WRONG_RESULT, detail="output y is off"),
    ]
    found = summary_table(b.run(trials, tasks=["hip2hip/m/a", "hip2hip/m/b", "hip2hip/m/c"]))
    row = found.rows[0]
    assert (row.agent, row.task_type, row.place, row.trials) == ("alpha", "all", 1, 3)
    assert row.outcomes == {Outcome.SOLVED: 1, Outcome.FAILED: 1, Outcome.NO_VERDICT: 1}
    gain, drop = row.measures["gain"], row.measures["correctness_drop"]
    assert gain is not None and gain.value == pytest.approx(2 ** (1 / 3)) and drop is not None and drop.value == 0
    assert [(f.task, f.outcome, f.detail) for f in found.failures] == [
        ("hip2hip/m/b", "failed", "wrong_result: output y is off"),
        ("hip2hip/m/c", "no verdict", "no record"),
    ]
    assert found.answers == answers(standings(*_measured(trials)), emulated=False), "the words of the page"


def _measured(trials: list[Trial]) -> tuple[list[TrialRow], list[Group]]:
    rows = trial_rows([b.run(trials, tasks=["hip2hip/m/a", "hip2hip/m/b", "hip2hip/m/c"])])
    return rows, groups(rows)


def test_an_overfit_trial_is_listed_with_the_unseen_case_that_is_wrong() -> None:
    wrong = b.heldout("h2", None, candidate=Status.WRONG_RESULT)
    found = summary_table(b.run([b.trial("hip2hip/m/a", cases=[b.case(), b.heldout(), wrong])]))
    (failure,) = found.failures
    assert (failure.outcome, failure.detail) == (Outcome.OVERFIT, "unseen h2 (h2 M=4 N=256 float32): wrong_result")
    terminal = Console(width=200, record=True, file=io.StringIO())
    terminal.print(render.failures_table(found))
    assert "overfit" in terminal.export_text()


def test_what_was_not_handed_in_is_said_beside_what_is_solved(tmp_path: Path) -> None:
    """Four planned: one passes, one is wrong, one was not handed in, one has no record."""
    trials = [
        b.trial("hip2hip/m/a", cases=[b.case("s1", 2.0), b.heldout()]),
        b.trial("hip2hip/m/b", Status.WRONG_RESULT),
        b.trial("hip2hip/m/c", Status.NOTHING_SUBMITTED),
    ]
    run = b.run(trials, tasks=[f"hip2hip/m/{name}" for name in "abcd"])
    row = summary_table(run).rows[0]
    assert (row.trials, row.outcomes[Outcome.NOT_HANDED_IN], row.outcomes[Outcome.SOLVED]) == (4, 1, 1)
    report = write_report([run], tmp_path)
    summary = (tmp_path / "summary.md").read_text()
    assert (
        "| alpha | all | 1 | 1/4 [4.6 %, 69.9 %], 1 not handed in | 0/4 | 1.19× [1.00×, 1.68×] of 4 tasks |" in summary
    )
    assert "| Agent | Planned | Solved | Failed | Not handed in | No verdict | Compiled | Correct, seen |" in summary
    assert "| alpha | 4 | 1 | 1 | 1 | 1 | 2/2 | 1/2 | 1 | 1 |" in summary, "how trials ended, and how far they got"
    assert ">Not handed in</th>" in report.index.read_text()
    with (tmp_path / "measures.csv").open() as file:
        rate = next(line for line in csv.DictReader(file) if line["measure"] == "compile_rate")
    assert [rate[name] for name in ("value", "planned", "handed_in", "not_handed_in", "count")] == [
        "0.5",
        "4",
        "2",
        "1",
        "4.0",
    ]
    counts = json.loads((tmp_path / "report.json").read_text())["groups"][0]["counts"]
    assert (counts["handed_in"], counts["not_handed_in"], counts["missing"]) == (2, 1, 1)
    terminal = Console(width=200, record=True, file=io.StringIO())
    terminal.print(render.summary_table(summary_table(run)))
    shown = terminal.export_text()
    for heading, cell in summary_table(run).rows[0].cells.items():
        words = cell.split() if heading.startswith("Gain") else cell.split(" [")[0].split()
        assert all(word in shown for word in words), "the cells of the page, without most of their intervals"


def test_summary_without_held_out_and_on_the_cpu_platform() -> None:
    found = summary_table(b.run([b.trial(cases=[b.case()], env=b.environment(b.CPU))]))
    row = found.rows[0]
    assert row.cells["Solved"] == "1/1 seen only" and row.outcomes == {Outcome.SEEN_ONLY: 1}
    assert row.measures["solved_rate"] is None and row.measures["correctness_drop"] is None
    assert "emulation" in found.notes[-1] and "Gain, emulated" in row.cells


def test_the_detail_of_a_failed_trial_comes_from_its_first_failed_stage() -> None:
    trial = b.trial(status=Status.COMPILE_ERROR)
    assert trial.evaluation is not None
    named = b.verdicts_of(Status.COMPILE_ERROR, "kernel.hip:3: expected ';'")
    object.__setattr__(trial.evaluation, "verdicts", named)
    assert summary_table(b.run([trial])).failures[0].detail == "compile_error: kernel.hip:3: expected ';'"


def test_doubts_name_what_is_wrong_and_the_next_command() -> None:
    trials = [
        b.trial(
            "hip2hip/m/a", cases=[b.case(noisy=True), b.heldout(), b.heldout("h2", candidate=Status.HARNESS_ERROR)]
        ),
        b.trial("hip2hip/m/f", cases=[b.case(doubted="too good"), b.heldout()]),
        b.trial("hip2hip/m/b", Status.HARNESS_ERROR, detail="device lost"),
        b.trial("hip2hip/m/c", cases=[b.case()]),
        b.trial("hip2hip/m/d", Status.IMPLAUSIBLE),
    ]
    run = b.run(trials, tasks=[f"hip2hip/m/{name}" for name in "abcdef"], config="my configs/x.yaml")
    found = warnings([run], trial_rows([run]))
    problems = "\n".join(warning.problem for warning in found)
    expected = ("without a record", "harness failed in 1 trial,", "never tried", "performance gate", "noisy")
    for words in (*expected, "without an outcome", "1 case measured twice"):
        assert words in problems
    assert found[0].items == ("alpha, hip2hip/m/e, attempt 1",)
    assert found[0].next_step == "type `arena run 'my configs/x.yaml' --name r1`, with the options that it had"
    assert found[-1].items == ("alpha, hip2hip/m/f, attempt 1: s1 M=4 N=256 float32: too good",)
    assert found[1].items == ("r1/trials/alpha/hip2hip.m.b.1.json: device lost",)


def test_a_clean_run_has_no_doubts() -> None:
    run = b.simple([1.0, 2.0])
    assert warnings([run], trial_rows([run])) == []


def test_runs_under_different_conditions_are_doubted() -> None:
    one = b.run([b.trial("hip2hip/m/a", cases=[b.case(), b.heldout()])])
    env = b.environment(torch="2.9.0")
    two = b.run([b.trial("hip2hip/m/a", cases=[b.case(), b.heldout()], run="r2", env=env, task_hash="new")], name="r2")
    changed, conditions = warnings([one, two], trial_rows([one, two]))
    assert changed.items == ("hip2hip/m/a",)
    assert "torch: 2.8.0, 2.9.0" in conditions.items


@pytest.mark.parametrize("config", ["", "{}", "agents:\n- a"])
def test_a_head_without_a_path_names_the_placeholder(config: str) -> None:
    assert resume_command(b.run([b.trial()], config=config).info) == "arena run CONFIG --name r1"


def test_numbers_as_text() -> None:
    quantity = Quantity(0.5, 0.25, 0.75, 9, Method.WILSON, 12)
    assert formats.counted(quantity, Unit.SHARE) == "50.0 % [25.0 %, 75.0 %] of 12"
    assert formats.quantity(quantity, Unit.SHARE) == "50.0 % [25.0 %, 75.0 %]"
    assert formats.quantity(Quantity(1.5, None, None, 1, Method.NONE, 1), Unit.FACTOR) == (
        "1.50× [one task: no interval]"
    )
    assert formats.quantity(None, Unit.PLAIN) == formats.NONE
    assert formats.speedup(Estimate(2.0, 1.9, 2.1)) == "2.00× [1.90, 2.10]"
    assert [formats.latency(b.estimate(ms)) for ms in (0.0123, 1.5, 250.0)] == ["12.3 µs", "1.5 ms", "250 ms"]
    assert (formats.ratio_of(4, 5), formats.ratio_of(0, 0)) == ("4/5", formats.NONE)
