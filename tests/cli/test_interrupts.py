"""Ctrl-C: one line that says what is left, exit code 130, and no word about a judge that was killed for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from arena.cli import Interrupted
from arena.cli.app import app
from arena.runs.service.judge_pool import JudgePool
from tests.fakes import FakeEvaluator
from tests.task.corpus.folders import write_task

KERNEL = "tasks/triton2triton/normalization/rms_norm/kernel.py"
ROOT = Path(__file__).parents[2]


class Pressed(FakeEvaluator):
    """A judge during whose evaluation Ctrl-C is pressed."""

    killed = 0

    def __init__(self, platform: str, device: int | None) -> None:
        super().__init__(interrupt_after=0)

    def close(self) -> None:
        assert Pressed.killed == 1, "a judge that is at work takes seconds to stop"

    def kill(self) -> None:
        Pressed.killed += 1


def test_evaluate_kills_its_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.api.evaluation.JudgeClient", Pressed)
    monkeypatch.setattr(Pressed, "killed", 0)
    done = CliRunner().invoke(app, ["evaluate", "rms_norm", KERNEL])
    assert isinstance(done.exception, Interrupted) and done.exception.exit_code == 130
    assert (str(done.exception), Pressed.killed) == ("interrupted", 1)


def test_a_run_says_how_many_trials_are_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_task(tmp_path / "tasks")
    config = tmp_path / "mine.yaml"
    config.write_text("tasks: ['*']\ncorpora: [tasks]\nattempts: 3\nagents: [{kind: noop}]\n", encoding="utf-8")

    @contextmanager
    def started(platform: str, devices: Sequence[int | None], *, builds: bool) -> Iterator[JudgePool]:
        yield JudgePool([FakeEvaluator(interrupt_after=2)])

    monkeypatch.setattr("arena.runs.service.judge_pool.started", started)
    typed = ["run", str(config), "--runs-dir", str(tmp_path / "my runs")]
    monkeypatch.setattr(sys, "argv", ["/somewhere/arena", *typed])
    done = CliRunner().invoke(app, typed)
    assert isinstance(done.exception, Interrupted), done.output
    again = f"arena run {config} --runs-dir '{tmp_path}/my runs'"
    assert str(done.exception) == f"interrupted: 2 of 3 recorded; `{again}` resumes"


def _never(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def test_every_other_command_says_that_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.task.corpus.corpora.open_corpora", _never)
    done = CliRunner().invoke(app, ["tasks", "list"])
    assert isinstance(done.exception, Interrupted) and str(done.exception) == "interrupted"


def test_ctrl_c_in_a_terminal_while_the_judge_starts(tmp_path: Path) -> None:
    """A terminal sends it to the whole process group.

    The command, not `python -m arena`: with -m, Python ends itself by the signal where that came during an `exec`.
    """
    typed = ["run", "quickstart", "--tasks", "rms_norm", "--agents", "honest", "--runs-dir", str(tmp_path)]
    with subprocess.Popen(
        [Path(sys.executable).with_name("arena"), *typed],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        while "starting a judge" not in process.stderr.readline():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert said == f"arena: interrupted: 0 of 1 recorded; `arena {' '.join(typed)}` resumes\n"
