"""`arena runs` lists run folders: finished, stopped, written by a process, or broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
from typer.testing import CliRunner

from arena.cli.app import app
from arena.runs import records
from arena.runs.listing import RunState, list_runs
from tests.reports import builders as b


def kept(place: Path, name: str, recorded: int, started_at: str) -> Path:
    """Write a run of two planned trials, each with a session of half a dollar."""
    made = b.simple([2.0, 1.0], name=name)
    folder = place / name
    records.write_head(folder, replace(made.info, started_at=started_at))
    for trial in made.trials[:recorded]:
        records.write_trial(folder, replace(trial, session=b.session()))
    return folder


def test_runs_are_listed_with_state_and_cost(tmp_path: Path) -> None:
    kept(tmp_path, "old", 2, "2026-01-01T00:00:00Z")
    kept(tmp_path, "stopped", 1, "2026-01-02T00:00:00Z")
    going_on = kept(tmp_path, "going-on", 1, "2026-01-03T00:00:00Z")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / records.HEAD).write_text("{", encoding="utf-8")
    (tmp_path / "no-run").mkdir()
    with records.locked(going_on):
        found = list_runs(tmp_path)
    assert [(one.run, one.state) for one in found] == [
        ("going-on", RunState.RUNNING),
        ("stopped", RunState.STOPPED),
        ("old", RunState.FINISHED),
        ("broken", RunState.UNREADABLE),
    ]
    assert [(one.recorded, one.planned, one.cost_usd) for one in found[:3]] == [(1, 2, 0.5), (1, 2, 0.5), (2, 2, 1.0)]
    assert list_runs(tmp_path)[0].state is RunState.STOPPED, "the lock is free again"
    assert records.HEAD in found[3].problem


def test_the_command(tmp_path: Path) -> None:
    nothing = CliRunner().invoke(app, ["runs", "--runs-dir", str(tmp_path)])
    assert nothing.exit_code == 0 and "`arena run quickstart` makes one" in nothing.output
    kept(tmp_path, "monday", 1, "2026-01-02T00:00:00Z")
    shown = CliRunner().invoke(app, ["runs", "--runs-dir", str(tmp_path)], env={"COLUMNS": "160"}).output
    assert all(word in shown for word in ("monday", "stopped", "1/2", "alpha", "2026-01-02 00:00", "$0.50"))
    said = msgspec.json.decode(CliRunner().invoke(app, ["runs", "--runs-dir", str(tmp_path), "--json"]).stdout)
    assert (said[0]["run"], said[0]["state"], said[0]["planned"]) == ("monday", "stopped", 2)
