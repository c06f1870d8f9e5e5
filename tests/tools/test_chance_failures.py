"""A case whose result is nothing but rounding is found; one that only computes is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from tests.task.corpus.folders import write_task
from tests.tools import load

tool = load("chance_failures")
EFFORT = tool.Effort(draws=30, seconds=100.0, elements=1000)


def written(root: Path, reference: str) -> Task:
    folder = write_task(root)
    (folder / "reference.py").write_text(f"def reference(x):\n    return {reference}\n", encoding="utf-8")
    return load_task(folder)


def test_what_cancels_is_found(tmp_path: Path) -> None:
    worst = {one.case: one for one in tool.sweep(written(tmp_path, "x * 1.0000001 - x"), EFFORT)}
    assert worst["seen-01"].draws == 30 and worst["seen-01"].above > 20
    assert worst["seen-01"].error > 1
    assert "elements wrong" in worst["seen-01"].detail


def test_what_does_not_cancel_is_let_be(tmp_path: Path) -> None:
    worst = list(tool.sweep(written(tmp_path, "x * 1.0000001"), EFFORT))
    assert {"seen-01", "heldout-03"} <= {one.case for one in worst}
    assert not any(one.above for one in worst)


def test_only_cases_with_small_outputs_can_be_asked_for(tmp_path: Path) -> None:
    found = tool.sweep(written(tmp_path, "x * 2"), tool.Effort(draws=1, seconds=1.0, elements=8))
    assert [one.case for one in found] == ["seen-01", "heldout-01"]


def test_rounded_operands_are_judged_too(tmp_path: Path) -> None:
    rounding = "1e6 * (x / 3 @ x.new_ones(x.shape[-1]).diag() - x / 3)"  # 0 where operands stay as they are
    worst = list(tool.sweep(written(tmp_path, rounding), EFFORT))
    half, single = ([one for one in worst if dtype in one.label] for dtype in ("float16", "float32"))
    assert half and all(one.above == one.draws for one in half)
    assert single and not any(one.error for one in single)


def test_only_timed_cases_can_be_asked_for(tmp_path: Path) -> None:
    found = tool.sweep(written(tmp_path, "x * 2"), replace(EFFORT, timed=True, elements=10**5))
    assert [one.case for one in found] == ["seen-04", "seen-05", "heldout-05"]
