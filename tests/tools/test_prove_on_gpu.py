"""The steps of `tools/prove_on_gpu.py` are commands that exist, and it remembers how they ended."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.tools import ROOT, load


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load("prove_on_gpu")


def words(code: int | str) -> tuple[str, ...]:
    """A command that ends so, or takes its time."""
    return (sys.executable, "-c", f"import sys, time; print('seen'); {code}")


@pytest.mark.system
def test_every_option_is_one_that_the_command_has(tool: ModuleType, tmp_path: Path) -> None:
    for step in tool.steps("cuda", "all", tmp_path):
        options = [word for word in step.command if re.fullmatch("--[a-z-]+", word)]
        if "pytest" in step.command or not options:
            continue
        first = step.command.index(options[0])
        asked = [*step.command[:first], "--help"]
        wide = {**os.environ, "COLUMNS": "200"}
        said = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=ROOT, env=wide).stdout
        for option in options:
            assert option in said, f"{step.name}: {' '.join(asked)} knows no {option}"


def test_what_passed_is_not_repeated_and_what_failed_is(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tool.Step("good", "", words("sys.exit(0)")), tool.Step("bad", "", words("sys.exit(3)"))
    assert tool.run_all([good, bad], tmp_path, time.monotonic() + 60.0, again=False) == 1
    first = capsys.readouterr().out
    assert "good         passed, " in first and "bad          failed with exit code 3" in first
    assert (tmp_path / "good.log").read_text() == "seen\n"
    assert tool.run_all([good], tmp_path, time.monotonic() + 60.0, again=False) == 0
    assert "passed before" in capsys.readouterr().out
    assert tool.run_all([good, bad], tmp_path, time.monotonic() + 60.0, again=False) == 1
    assert "failed with exit code 3" in capsys.readouterr().out


def test_what_time_does_not_suffice_for_is_left(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "_LEAST_S", 0.5)
    slow, next_one = tool.Step("slow", "", words("time.sleep(60)"), resumes=True), tool.Step("next", "", words("0"))
    began = time.monotonic()
    assert tool.run_all([slow, next_one], tmp_path, began + 1.0, again=False) == 2
    assert time.monotonic() - began < 20.0
    said = capsys.readouterr().out
    assert "slow         out of time" in said and "next         not reached" in said
    assert tool.run_all([next_one], tmp_path, time.monotonic() + 60.0, again=False) == 0
