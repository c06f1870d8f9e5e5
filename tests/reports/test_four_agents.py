"""Four agents of whom every page must say the same: one overfits, one gives up, one is honest and slow, one is fast."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

import arena
from arena.cli.app import app
from arena.reports.compare import Conclusion, compare_agents
from arena.reports.pages import write_report
from arena.reports.site import write_site
from arena.reports.site_entries import read_entries
from arena.results.record import Trial
from arena.results.verdict import Status
from arena.runs import records
from tests.reports import builders as b
from tests.reports.test_pages import Page

TASKS = [f"hip2hip/m/t{place}" for place in range(6)]
ORDER = ["fast", "slow", "gives_up", "overfits"]
GAINS = {"fast": "1.50×", "slow": "1.00×", "gives_up": "1.00×", "overfits": "1.00×"}
SOLVED = {"fast": "6/6", "slow": "6/6", "gives_up": "0/6", "overfits": "0/6"}


def trial(agent: str, task: str) -> Trial:
    wrong = b.heldout("h2", None, candidate=Status.WRONG_RESULT)
    if agent == "overfits":
        return b.trial(task, cases=[b.case("s1", 2.5), b.heldout(), wrong], agent=agent)
    speed = {"fast": 1.5, "slow": 0.9, "gives_up": 1.0}[agent]
    found = b.trial(task, cases=[b.case("s1", speed), b.heldout("h1", speed), b.heldout("h2", speed)], agent=agent)
    assert found.evaluation is not None
    return replace(found, evaluation=replace(found.evaluation, unchanged=agent == "gives_up"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> records.RunRecords:
    folder = tmp_path_factory.mktemp("runs") / "r1"
    made = b.run([trial(agent, task) for task in TASKS for agent in sorted(ORDER)])
    folder.mkdir()
    records.write_head(folder, made.info)
    for one in made.trials:
        records.write_trial(folder, one)
    return records.read_run(folder)


def agents_of(table: list[list[str]]) -> list[str]:
    return [row[0] for row in table if row[1] == "all"]


def test_the_report(run: records.RunRecords, tmp_path: Path) -> None:
    report = write_report([run], tmp_path)
    page = Page(report.index.read_text(encoding="utf-8"))
    assert report.warnings == (), "the baseline unchanged is no kernel that was not tried"
    assert "Which agent is best? fast It solves 6 of 6 trials" in page.text
    assert "By how much, really? 1.50× [1.49×, 1.51×] of 6 tasks" in page.text
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    table = [line.strip("| ").split(" | ") for line in summary.splitlines() if " | all | " in line]
    assert agents_of(table) == ORDER and [row[2] for row in table] == ["1", "2", "3 ≈", "4 ≈"]
    assert {row[0]: row[3].split()[0] for row in table} == SOLVED
    assert {row[0]: row[5].split()[0] for row in table} == GAINS
    groups = [one for one in json.loads((tmp_path / "report.json").read_text())["groups"] if one["task_type"] == "all"]
    assert [one["agent"] for one in groups] == ORDER and [one["place"] for one in groups] == [1, 2, 3, 4]
    assert {one["agent"]: f"{one['mean_of_attempts']['gain']['value']:.2f}×" for one in groups} == GAINS
    with (tmp_path / "measures.csv").open(encoding="utf-8") as file:
        lines = [one for one in csv.DictReader(file) if (one["measure"], one["attempts"]) == ("gain", "mean")]
    assert {one["agent"]: f"{float(one['value']):.2f}×" for one in lines if one["task_type"] == "all"} == GAINS
    assert list(dict.fromkeys(one["agent"] for one in lines)) == ORDER
    with (tmp_path / "trials.csv").open(encoding="utf-8") as file:
        outcomes = {one["agent"]: one["outcome"] for one in csv.DictReader(file)}
    assert outcomes == {"fast": "solved", "slow": "solved", "gives_up": "not handed in", "overfits": "overfit"}
    task = (tmp_path / "tasks" / "hip2hip.m.t0.html").read_text(encoding="utf-8")
    assert '<span class="badge bad">overfit</span>' in task and '<span class="badge none">not handed in</span>' in task
    with (tmp_path / "trials.csv").open(encoding="utf-8") as file:
        ended = {one["agent"]: one["stage_status"] for one in csv.DictReader(file)}
    assert ended["overfits"] == "wrong_result", "also in data that machines read"
    assert ">passed<" not in task.split("<h3>Cases</h3>")[0], "a trial that is wrong on unseen cases is not `passed`"


def test_the_site(run: records.RunRecords, tmp_path: Path) -> None:
    """Nobody but their author has judged these kernels: each agent has its figures, and none has a rank."""
    write_site(read_entries([run.path]), tmp_path)
    with (tmp_path / "boards.csv").open(encoding="utf-8") as file:
        rows = {row["Agent"].split()[0]: row for row in csv.DictReader(file) if row["Task type"] == "all"}
    assert set(rows) == set(ORDER) and not any(row["Rank"].strip("– ") for row in rows.values())
    assert {agent: row["Gain"].split()[0] for agent, row in rows.items()} == GAINS
    assert {agent: row["Solved"].split()[0] for agent, row in rows.items()} == SOLVED
    assert "6 trials claimed" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_the_terminal(run: records.RunRecords, tmp_path: Path) -> None:
    command = ["report", str(run.path), "--out", str(tmp_path)]
    shown = CliRunner().invoke(app, command, env={"COLUMNS": "220"}).output
    assert "Which agent is best? fast. It solves 6 of 6 trials" in " ".join(shown.split())
    assert "By how much, really? 1.50× [1.49×, 1.51×] of 6 tasks" in " ".join(shown.split())
    rows = [line.strip("│ ").split("│") for line in shown.splitlines() if "│ all " in line]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert agents_of(cells) == ORDER and {row[0]: row[5].split()[0] for row in cells} == GAINS
    said = msgspec.json.decode(CliRunner().invoke(app, [*command, "--json"]).stdout)[0]
    assert said["answers"][0]["lead"] == "fast" and said["answers"][1]["lead"].startswith("1.50×")
    assert [(row["agent"], row["place"]) for row in said["rows"] if row["task_type"] == "all"] == list(
        zip(ORDER, (1, 2, 3, 4), strict=True)
    )
    assert {row["agent"]: row["outcomes"] for row in said["rows"]}["overfits"] == {"overfit": 6}


def test_a_notebook_and_a_comparison(run: records.RunRecords) -> None:
    shown = arena.load_run(run.path)._repr_html_()
    places = [shown.index(f"<td>{agent}</td>") for agent in ORDER]
    assert places == sorted(places)
    found = compare_agents(run, "overfits", "slow")
    assert found.seen.finding is Conclusion.NONE_SHOWN and found.solved.finding is Conclusion.SECOND
    assert "Solved, unseen cases too: slow (r1) more often" in found.solved.conclusion
