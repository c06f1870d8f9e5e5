"""Agents by `command:` in real boxes: what they find beside themselves, and how a start that fails is told."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from arena.agents.definition import load_definition
from arena.cli.progress import RunDisplay
from arena.errors import FileError
from arena.processes.scratch import scratch
from arena.results.record import Trial
from arena.results.verdict import Status
from arena.runs import runner
from arena.runs.config import load_config
from arena.runs.service.judge_pool import JudgePool
from tests.fakes import Timing, planned
from tests.task.corpus.folders import write_task

AGENT = """\
import helper, json, pathlib
top = pathlib.Path(__file__).parents[1]
seen = sorted(str(one.relative_to(top)) for one in top.rglob("*") if one.is_file() and one.suffix != ".pyc")
print(json.dumps([helper.WORD, *seen]))
"""
RUN = """\
tasks: ['*']
attempts: 1
agents:
  - {kind: command, name: mine, command: COMMAND, show: [../tools]}
"""


def ran(place: Path, command: str) -> tuple[Trial, str, list[str]]:
    """One trial of `command` from a configuration in `place/mine`; what was displayed, and what it printed."""
    folder = place / "mine"
    for one in (folder, folder / "secret", place / "tools"):
        one.mkdir()
        (one / "file").write_text("x")
    (folder / "helper.py").write_text("WORD = 'helped'\n")
    (folder / "agent.py").write_text(AGENT)
    (folder / "failing.py").write_text("import sys\nsys.stderr.write('first\\n' * 3)\nraise ValueError('no luck')\n")
    script = folder / "agent.sh"
    script.write_text('#!/bin/sh\nexec python3 "$(dirname "$0")/agent.py"\n')
    script.chmod(0o755)
    place.chmod(0o755)
    config = folder / "run.yaml"
    config.write_text(RUN.replace("COMMAND", command))
    write_task(place / "tasks")
    display = io.StringIO()
    with RunDisplay(Console(file=display, width=80)) as watcher:
        plan = planned(load_config(config), place / "tasks")
        (trial,) = runner.run(plan, folder / "runs" / "one", JudgePool([Timing()]), watcher).trials
    raw = next((folder / "runs").rglob("raw.jsonl"), None)
    return trial, display.getvalue(), [json.loads(line)["line"] for line in raw.read_text().splitlines()] if raw else []


@pytest.mark.parametrize("command", ["[python3, agent.py]", "[python, ./agent.py]", "[./agent.sh]"])
def test_files_beside_the_program_are_visible_and_folders_only_where_shown(command: str) -> None:
    with scratch("command") as place:
        trial, _, printed = ran(Path(place), command)
        assert trial.status is Status.NOTHING_SUBMITTED, trial.detail
        beside = ["agent.py", "agent.sh", "failing.py", "file", "helper.py", "run.yaml"]
        assert json.loads(printed[0]) == ["helped", *(f"mine/{name}" for name in beside), "tools/file"]


def test_a_start_that_fails_prints_its_whole_reason() -> None:
    with scratch("command") as place:
        trial, displayed, _ = ran(Path(place), "[python3, failing.py]")
        assert trial.status is Status.HARNESS_ERROR and trial.seconds < 60
        for said in ("did not get going: the program ended with exit code 1", "first\n" * 3, "ValueError: no luck"):
            assert said in displayed and said in trial.detail


def test_a_program_that_the_box_does_not_show_is_an_error_of_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise FileNotFoundError("agent.sh: no such program in the box")

    monkeypatch.setattr("arena.agents.box.bubblewrap.BubblewrapBox.start", missing)
    monkeypatch.setattr("arena.agents.box.fallback.FallbackBox.start", missing)
    with scratch("command") as place:
        trial, displayed, _ = ran(Path(place), "[./agent.sh]")
        assert trial.status is Status.HARNESS_ERROR
        assert "agent mine cannot start: agent.sh: no such program in the box" in displayed


def test_show_names_what_exists(tmp_path: Path) -> None:
    text = "name: mine\nabout: x\ncommand: [python3, tool.py]\nprompt: file\nevents: text\nshow: [kit]\n"
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(FileError, match=r"mine\.yaml:6: `show\.0`: .*kit does not exist"):
        load_definition(path)
    (tmp_path / "kit").mkdir()
    (tmp_path / "tool.py").write_text("")
    found = load_definition(path)
    assert (found.show, found.command, found.beside) == (
        (tmp_path / "kit",),
        ("python3", str(tmp_path / "tool.py")),
        (tmp_path,),
    )
