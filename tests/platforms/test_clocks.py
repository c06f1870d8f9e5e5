"""`--lock-clocks`: locked only where it works, and reset whatever happens. Fake tools are on the path."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.checks.doctor import timing
from arena.cli.app import app
from arena.errors import UsageError
from arena.platforms.clocks import locked_clocks
from tests.platforms.amd_outputs import MI300X, new
from tests.platforms.test_condition import IDLE, _no_judge, _NoJudge, asked, program, tools

__all__ = ["tools"]
LOCK, RESET = "--id=0 --lock-gpu-clocks=1980", "--id=0 --reset-gpu-clocks"


def nvidia(folder: Path, *, lock: str = "echo 'All done.'", reset: str = "echo 'All done.'") -> None:
    cases = f'*--lock*) {lock};; *--reset*) {reset};; *--query-gpu*) echo "{IDLE}";;'
    program(folder, "nvidia-smi", f'case "$*" in {cases} esac')


def changed(folder: Path) -> list[str]:
    return [line for line in asked(folder) if "query" not in line]


def test_clocks_are_locked_and_reset(tools: Path) -> None:
    nvidia(tools)
    told: list[str] = []
    with locked_clocks("cuda", (None,), told.append):
        assert changed(tools) == [LOCK]
    assert changed(tools) == [LOCK, RESET]
    assert told == ["clocks locked at 1980 MHz; if this command is killed: `nvidia-smi --id=0 --reset-gpu-clocks`"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError])
def test_clocks_are_reset_after_an_interrupt(tools: Path, problem: type[BaseException]) -> None:
    nvidia(tools)
    with pytest.raises(problem), locked_clocks("cuda", (None,), lambda line: None):
        raise problem
    assert changed(tools) == [LOCK, RESET]


def test_a_second_interrupt_does_not_stop_the_reset(tools: Path) -> None:
    nvidia(tools, reset=f"kill -INT {os.getpid()}; sleep 0.3; touch {tools}/done")
    with pytest.raises(KeyboardInterrupt), locked_clocks("cuda", (None,), lambda line: None):
        raise KeyboardInterrupt
    assert (tools / "done").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "lock",
    [
        "echo 'The current user does not have permission to change clocks for GPU 0.'; exit 4",
        "echo 'Setting locked GPU clocks is not supported for GPU 0. Treating as warning and moving on.'",
        "exit 3",
    ],
)
def test_a_refusal_is_an_error_and_nothing_is_reset(tools: Path, lock: str) -> None:
    nvidia(tools, lock=lock)
    with pytest.raises(UsageError, match=r"--lock-clocks: .*(permission|not supported|exit code 3).*needs root"):
        locked_clocks("cuda", (None,), lambda line: None).__enter__()
    assert changed(tools) == [LOCK]


def test_what_was_locked_is_reset_where_the_next_gpu_refuses(tools: Path) -> None:
    nvidia(tools, lock='case "$*" in *--id=1*) exit 4;; esac')
    with pytest.raises(UsageError, match="id=1"):
        locked_clocks("cuda", (0, 1), lambda line: None).__enter__()
    assert changed(tools) == [LOCK, LOCK.replace("0", "1", 1), RESET]


def test_a_reset_that_fails_is_a_warning_with_its_command(tools: Path) -> None:
    nvidia(tools, reset="exit 9")
    told: list[str] = []
    with locked_clocks("cuda", (None,), told.append):
        pass
    assert told[1] == ("warning: the clocks are still locked: exit code 9; run `nvidia-smi --id=0 --reset-gpu-clocks`")


def test_without_a_known_clock_it_is_an_error(tools: Path) -> None:
    for platform in ("auto", "cpu", "rocm"):
        with pytest.raises(UsageError, match=f"not known on platform {platform}"):
            locked_clocks(platform, (None,), lambda line: None).__enter__()


def test_amd_gpus_have_their_own_commands(tools: Path) -> None:
    (tools / "metric.json").write_text(new(MI300X), encoding="utf-8")
    program(tools, "amd-smi", f'[ "$1" = metric ] && cat "{tools}/metric.json"; true')
    with locked_clocks("rocm", (None,), lambda line: None):
        pass
    lines = [line for line in asked(tools) if "--perf-determinism" in line]
    assert lines == ["set --gpu 0 --perf-determinism 2100", "reset --gpu 0 --perf-determinism"]


def test_commands_lock_only_when_asked(tools: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nvidia(tools)
    monkeypatch.setattr(timing, "JudgeClient", _no_judge)
    monkeypatch.setattr("arena.runs.executors.base.started", _no_judge)
    run = ["run", "quickstart", "--tasks", "*/rms_norm", "--runs-dir", str(tmp_path / "runs")]
    for command in (["doctor", "--timing"], run):
        asked_before = [*command, "--platform", "cuda"]
        assert isinstance(CliRunner().invoke(app, asked_before).exception, _NoJudge)
        assert changed(tools) == []
        assert isinstance(CliRunner().invoke(app, [*asked_before, "--lock-clocks"]).exception, _NoJudge)
        assert changed(tools) == [LOCK, RESET]
        (tools / "asked").unlink()
    for wrong in (["doctor", "--lock-clocks"], [*run, "--executor", "ray", "--lock-clocks"]):
        assert isinstance(CliRunner().invoke(app, wrong).exception, UsageError)
