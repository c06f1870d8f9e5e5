"""A candidate has the baseline scheduled otherwise, in a judge that has evaluated before."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.judge.process.client import JudgeClient
from arena.results.record import Evaluation
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS
from arena.task.options import Options

RMS_NORM = TASKS / "triton2triton/normalization/rms_norm"
START = (RMS_NORM / "kernel.py").read_text(encoding="utf-8")
QUICK = Options(heldout=False, seeds=1, max_work=2e4, timing_budget_s=0.02)
MOVES = """
def _move():
    import os, threading
    def parent(process):
        with open(f"/proc/{process}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    def again():
        while True:
            for name in os.listdir("/proc"):
                try:
                    if name.isdigit() and int(name) != os.getpid() and parent(name) == os.getppid():
                        os.setpriority(os.PRIO_PROCESS, int(name), 7)
                except OSError:
                    pass
            threading.Event().wait(0.01)
    threading.Thread(target=again, daemon=True).start()

_move()
"""
"""Only other workers of its own judge are made nice: one run has no filter, and the machine has other processes."""


def _second_evaluation(folder: Path) -> Evaluation:
    """The baseline is known by then, and its worker started after the candidate's."""
    candidate = folder / "kernel.py"
    candidate.write_text(START, encoding="utf-8")
    with JudgeClient("cpu") as judge:
        assert judge.evaluate(RMS_NORM, candidate, QUICK).status is Status.PASSED
        candidate.write_text(START + MOVES, encoding="utf-8")
        return judge.evaluate(RMS_NORM, candidate, QUICK)


@pytest.mark.slow
def test_a_baseline_that_the_candidate_moved_voids_the_timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_SANDBOX", "basic")
    done = _second_evaluation(tmp_path)
    assert done.status is Status.TIMING_MISMATCH
    assert "the process of the baseline was given nice value 7 instead of" in done.verdicts[-1].detail


@pytest.mark.slow
def test_behind_all_walls_it_is_not_moved(tmp_path: Path) -> None:
    done = _second_evaluation(tmp_path)
    if "seccomp" not in done.environment.isolation:
        pytest.skip(f"no filter here: {done.environment.isolation}")
    assert "was given" not in done.verdicts[-1].detail
