"""A HIP candidate that has its compiler read held-out cases gets an error, and nothing of them (cheat 40)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json

from arena.judge.compile.stage import build_program
from arena.judge.process.client import JudgeClient
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.toolchains.base import BuildFailed, Source, Target
from arena.platforms.toolchains.hip_build import Runner
from arena.processes.sandbox import compiling
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options
from tests.fakes import HERE

SOFTMAX = TASKS / "hip2hip" / "modules" / "softmax"
OPTIONS = Options(heldout=False, seeds=1, call_timeout_s=20.0, timing_budget_s=0.05, max_work=5e4)


def test_a_candidate_learns_nothing_of_held_out_cases(cpu_judge: JudgeClient, tmp_path: Path) -> None:
    if compiling.level() == "none":
        pytest.skip("no walls for compilers on this machine")
    heldout = SOFTMAX / "heldout.yaml"
    candidate = tmp_path / "kernel.hip"
    candidate.write_text(f'#include "task.h"\n#include "{heldout}"\n', encoding="utf-8")
    evaluation = cpu_judge.evaluate(SOFTMAX, candidate, OPTIONS)
    assert evaluation.status is Status.COMPILE_ERROR, evaluation.verdicts
    written = json.encode(evaluation).decode()
    lines = [line.strip() for line in heldout.read_text(encoding="utf-8").splitlines() if len(line.strip()) > 4]
    assert lines and not any(line in written for line in lines)
    assert "heldout.yaml" in evaluation.verdicts[-1].detail
    assert "compilers" in evaluation.environment.isolation


def test_a_build_made_behind_other_walls_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a compiler could read then may stand in it."""
    shelves: list[Path] = []

    class NeverBuilds:
        def __init__(self, target: Target, cache_root: Path, run: Runner) -> None:
            shelves.append(cache_root)

        def build(self, source: Source, target: Target, timeout_s: float) -> BuildFailed:
            return BuildFailed("no", 0.0)

    task = load_task(SOFTMAX)
    assert task.baseline_kernel is not None
    monkeypatch.setattr("arena.judge.compile.stage.toolchain_for", NeverBuilds)
    for level in ("none", "bubblewrap+seccomp"):
        monkeypatch.setattr(compiling, "level", lambda level=level: level)
        with pytest.raises(CandidateFailed):
            build_program(task, task.baseline_kernel, task.seen[:1], HERE.device)
    assert len(set(shelves)) == 2
