"""The steps of `arena doctor --full` are commands that exist, and it remembers how they ended."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arena import __version__
from arena.checks.doctor import full
from arena.errors import UsageError
from tests.tools import ROOT


class Told:
    """Collects lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    def text(self) -> str:
        """The lines since the last call."""
        said, self.lines = "\n".join(self.lines), []
        return said


@pytest.fixture
def tell() -> Told:
    return Told()


def words(code: int | str) -> tuple[str, ...]:
    """A command that ends so, or takes its time."""
    return (sys.executable, "-c", f"import sys, time; print('seen'); {code}")


@pytest.mark.slow
def test_every_option_is_one_that_the_command_has(tmp_path: Path) -> None:
    for step in full.steps("cuda", "all", tmp_path):
        options = [word for word in step.command if re.fullmatch("--[a-z-]+", word)]
        if "pytest" in step.command or not options:
            continue
        first = step.command.index(options[0])
        asked = [*step.command[:first], "--help"]
        wide = {**os.environ, "COLUMNS": "200"}
        said = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=ROOT, env=wide).stdout
        for option in options:
            assert option in said, f"{step.name}: {' '.join(asked)} knows no {option}"


def test_what_passed_is_not_repeated_and_what_failed_is(tmp_path: Path, tell: Told) -> None:
    good, bad = full.DoctorStep("good", "", words("sys.exit(0)")), full.DoctorStep("bad", "", words("sys.exit(3)"))
    assert full.run_full([good, bad], tmp_path, time.monotonic() + 60.0, tell) == 1
    first = tell.text()
    assert "good         passed, " in first and "bad          failed with exit code 3" in first
    assert (tmp_path / "good.log").read_text() == "seen\n"
    assert full.run_full([good], tmp_path, time.monotonic() + 60.0, tell) == 0
    assert "passed before" in tell.text()
    assert full.run_full([good, bad], tmp_path, time.monotonic() + 60.0, tell) == 1
    assert "failed with exit code 3" in tell.text()


def test_what_passed_on_another_platform_is_repeated(tmp_path: Path, tell: Told) -> None:
    good = full.DoctorStep("good", "", words("sys.exit(0)"))
    for platform, again in (("cuda", False), ("cuda", True), ("rocm", False)):
        assert full.run_full([good], tmp_path, time.monotonic() + 60.0, tell, platform=platform) == 0
        assert ("passed before" in tell.text()) is again, platform


def test_no_step_writes_into_the_checkout(tmp_path: Path) -> None:
    """A changed checkout is other code: all that passed would be repeated."""
    cheats = next(step for step in full.steps("rocm", "", tmp_path) if step.name == "cheats")
    assert cheats.command[-2:] == ("--results", str(tmp_path / "cheats.json"))


def test_what_time_does_not_suffice_for_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Told) -> None:
    monkeypatch.setattr(full, "_LEAST_S", 0.01)
    slow, next_one = (
        full.DoctorStep("slow", "", words("time.sleep(600)"), resumes=True),
        full.DoctorStep("next", "", words("0")),
    )
    began = time.monotonic()
    assert full.run_full([slow, next_one], tmp_path, began + 2.0, tell) == 2
    assert time.monotonic() - began < 60
    said = tell.text()
    assert "slow         out of time" in said and "next         not reached" in said
    assert full.run_full([next_one], tmp_path, time.monotonic() + 60.0, tell) == 0


def test_without_a_checkout_the_steps_that_need_one_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"tests", "cheats"} < {step.name for step in full.steps("cpu", "", tmp_path)}
    monkeypatch.setattr(full, "checkout", lambda: None)
    assert [step.name for step in full.steps("cpu", "", tmp_path)] == ["quick", "timing", "check", "full"]
    assert full.code_version() == __version__


def test_a_step_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    every = full.steps("cpu", "", tmp_path)
    assert [step.name for step in full.chosen_steps(every, ["timing"])] == ["timing"]
    with pytest.raises(UsageError, match="no step is called clock; there are: quick, timing"):
        full.chosen_steps(every, ["clock"])
