"""Inputs that happen to cancel do not fail an honest kernel, and let no wrong one pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from arena.judge.correctness import verify
from arena.judge.correctness.conditioning import MARGIN
from arena.judge.correctness.verify import OutputCheck, check_outputs
from arena.results.verdict import Status
from arena.task.corpus.task_folder import load_task
from arena.task.definition import arguments
from arena.task.numerics.reference import Reference
from tests.task.corpus.folders import write_task

LEFT = 2e-4
"""what is left where `x * x - bias` cancels, near 1: a float32 has 6e-8 of rounding there"""

ALMOST = 1e-4
"""eight tenths of what is allowed of a result near 1"""


def judged(
    root: Path,
    case: int,
    off: float = 0.0,
    left: float = LEFT,
    enough: float = MARGIN,
    errors: dict[str, float] | None = None,
) -> OutputCheck:
    """What is said of `x * x - bias` computed in float32 in two steps, the last element `off` by so much."""
    folder = write_task(root)
    (folder / "reference.py").write_text("def reference(x, bias):\n    return x * x - bias\n", encoding="utf-8")
    task = load_task(folder)
    given = arguments(task, task.seen[case])
    y = given.tensors["y"]
    assert y is not None
    row = torch.linspace(1.01, 1.3, y.shape[1])
    x, bias = row.repeat(y.shape[0], 1), (row.double().square() - left).float()
    found = x * x - bias
    found[-1, -1] += off
    reference, inputs = Reference(task.reference_path), {"x": x, "bias": bias}
    return check_outputs(given, reference, inputs, {"y": found}, enough=enough, errors=errors)


def test_rounding_alone_fails_nobody(tmp_path: Path) -> None:
    """Errors here are above the least tolerance; where there are more elements, the arithmetic error shows them."""
    for finding in (judged(tmp_path / "few", 0), judged(tmp_path / "more", 1)):
        assert finding.status is Status.PASSED, finding.detail
        assert finding.error_ratio is not None and finding.error_ratio < 0.5


@pytest.mark.parametrize("off", [2e-6, 2e-5])
def test_what_is_more_than_rounding_is_wrong(tmp_path: Path, off: float) -> None:
    finding = judged(tmp_path, 0, off)
    assert finding.status is Status.WRONG_RESULT
    assert "[0, 7]" in finding.detail


def test_where_nothing_cancels_nothing_is_let_be(tmp_path: Path) -> None:
    """One and a half times what is allowed of a result near 1."""
    assert judged(tmp_path / "right", 0, left=1.0).status is Status.PASSED
    assert judged(tmp_path / "wrong", 0, off=3e-4, left=1.0).status is Status.WRONG_RESULT


def test_an_error_that_is_enough_costs_no_second_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most calls of a timed pass are within the least tolerance, if not within half of it."""
    calls: list[object] = []

    def counted(*given: object) -> dict[str, float]:
        calls.append(given)
        return {}

    monkeypatch.setattr(Reference, "arithmetic_errors", counted)
    for enough, most in ((1.0, 0), (MARGIN, 1)):
        calls.clear()
        finding = judged(tmp_path / str(enough), 1, left=1.0, off=ALMOST, enough=enough)
        assert finding.status is Status.PASSED
        assert len(calls) == most


def test_what_an_earlier_draw_explains_costs_no_second_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does not explain is held against this draw's own errors, and the least are kept."""
    calls: list[object] = []
    computed = Reference.arithmetic_errors

    def counted(*given: Any) -> dict[str, float]:
        calls.append(given)
        return computed(*given)

    monkeypatch.setattr(Reference, "arithmetic_errors", counted)
    errors: dict[str, float] = {}
    assert judged(tmp_path / "first", 1, enough=1.0, errors=errors).status is Status.PASSED
    assert len(calls) == 1 and errors["y"] > 0
    usual, errors["y"] = errors["y"], errors["y"] * 4
    assert judged(tmp_path / "within half", 1, enough=1.0, errors=errors).status is Status.PASSED
    assert len(calls) == 1
    errors["y"] = usual
    assert judged(tmp_path / "wrong", 1, off=1e-3, enough=1.0, errors=errors).status is Status.WRONG_RESULT
    assert len(calls) == 2
    errors["y"] = 1e-12
    assert judged(tmp_path / "less", 1, enough=1.0, errors=errors).status is Status.PASSED
    assert len(calls) == 3 and errors["y"] == 1e-12 < usual


def test_of_few_elements_an_earlier_draw_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may happen to cancel in one draw, and in no other."""
    monkeypatch.setattr(verify, "FEW", 1 << 20)
    errors = {"y": 1.0}
    wrong = judged(tmp_path, 1, off=1e-3, enough=1.0, errors=errors)
    assert wrong.status is Status.WRONG_RESULT
