"""No case may be one in which rounding decides what is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from arena.checks.tasks.conditioning import NAME, conditioning_item
from arena.results.check import CheckItem, CheckOutcome
from arena.task.corpus.task_folder import load_task
from arena.task.numerics.reference import Reference
from tests.checks.tasks.affine import HELDOUT, PLACE, TASK, Write

Check = Callable[..., CheckItem | None]
FAR = "- {kind: values, M: 12, N: 9, dtype: bfloat16, fills: {x: {normal_even: [0, 1.0e+5]}%s}}\n"
REFERENCE = "def reference(x, gain, offset):\n    products = (x * gain[:, None]) @ (x.T @ x)\n    return %s + offset\n"
DECIDED, SUMMED = REFERENCE % "products.sigmoid()", REFERENCE % "products"
SMALL_GAIN = ", gain: {normal_even: [0, 1.0e-16]}"


@pytest.fixture
def check(write: Write) -> Check:
    def checked(reference: str, case: str = "", declared: str = "") -> CheckItem | None:
        folder = write({}) / PLACE
        text = TASK.replace("float16]", "float16, bfloat16]") + (
            f"exceptions: {{{NAME}: {declared}}}\n" if declared else ""
        )
        files = {"task.yaml": text, "heldout.yaml": HELDOUT + case, "reference.py": reference}
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
        task = load_task(folder)
        return conditioning_item(task, Reference(task.reference_path), torch.Generator().manual_seed(0))

    return checked


def outcome(item: CheckItem | None) -> CheckOutcome | None:
    return item.outcome if item is not None else None


def test_large_numbers_before_a_sigmoid_are_refused(check: Check) -> None:
    item = check(DECIDED, FAR % "")
    assert item is not None and item.outcome is CheckOutcome.FAILED
    assert "M=12 N=9 bfloat16 x normal_even 0 100000.0: rounded otherwise, an honest answer is off by" in item.detail


def test_they_pass_where_the_products_are_small(check: Check) -> None:
    assert outcome(check(DECIDED, FAR % SMALL_GAIN)) is CheckOutcome.PASSED


def test_they_pass_where_nothing_is_decided(check: Check) -> None:
    assert outcome(check(SUMMED, FAR % "")) is CheckOutcome.PASSED


def test_usual_numbers_are_no_case_for_it(check: Check) -> None:
    assert check(DECIDED) is None


def test_a_task_may_give_a_reason(check: Check) -> None:
    item = check(DECIDED, FAR % "", "the task is a choice")
    assert item is not None and (item.outcome, item.detail) == (CheckOutcome.DECLARED, "the task is a choice")
