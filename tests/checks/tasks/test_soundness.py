"""What a definition must show, where chance decides whether one look shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from arena.checks.tasks.soundness import check_definition
from arena.results.check import CheckOutcome
from arena.task.corpus.task_folder import load_task
from arena.task.numerics.reference import Reference
from tests.task.corpus.folders import TASK, write_task

FLAGGED = TASK.replace("outputs:", "  keep: {shape: [1], dtype: bool, fill: {bernoulli: 0.5}}\noutputs:")
REFERENCE = """\
def reference(x, alpha, flag, bias, keep):
    y = x * alpha if bias is None else x * alpha + bias
    return y * (1 + keep.to(y.dtype)) * (2 if flag else 1)
"""
SEEDS = 24


def test_an_input_that_shows_by_chance_gets_several_chances(tmp_path: Path) -> None:
    """Exchanged, one coin falls otherwise in half of all draws: one look would miss it as often."""
    folder = write_task(tmp_path, task=FLAGGED)
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    task = load_task(folder)
    reference, case = Reference(task.reference_path), task.seen[1]
    missed = 0
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(seed)
        items = list(check_definition(task, reference, [case], generator))
        assert {item.name for item in items if item.outcome is CheckOutcome.FAILED} <= {"keep matters"}
        missed += any(item.name == "keep matters" and item.outcome is CheckOutcome.FAILED for item in items)
    assert missed <= SEEDS // 6


ONE_NUMBER = TASK.replace("shape: [M, N], dtype: $dtype}\nwork", "shape: [], dtype: $dtype}\nwork")


@pytest.mark.slow
def test_one_number_that_is_coarse_by_chance_gets_several_chances(tmp_path: Path) -> None:
    """A mean lies next to a bfloat16 number in one or two of a hundred draws: that says nothing of the tolerance."""
    folder = write_task(tmp_path, task=ONE_NUMBER)
    (folder / "reference.py").write_text(
        "def reference(x, alpha):\n    return (x * alpha).sum() + 1\n", encoding="utf-8"
    )
    task = load_task(folder)
    reference, case = Reference(task.reference_path), task.seen[1]
    for seed in range(400):
        items = list(check_definition(task, reference, [case], torch.Generator().manual_seed(seed)))
        assert [item.detail for item in items if item.name == "tolerance" and item.outcome is CheckOutcome.FAILED] == []


DRAWN = TASK.replace("fill: normal", "fill: custom", 1)
AT_ONCE = "torch.rand(count, *shape, generator=generator, device=generator.device)"
ONE_BY_ONE = "torch.stack([torch.rand(*shape, generator=generator, device=generator.device) for _ in range(count)])"


@pytest.mark.parametrize(("draw", "outcome"), [(AT_ONCE, CheckOutcome.PASSED), (ONE_BY_ONE, CheckOutcome.FAILED)])
def test_inputs_of_many_sets_are_drawn_at_once(tmp_path: Path, draw: str, outcome: CheckOutcome) -> None:
    folder = write_task(tmp_path, task=DRAWN)
    (folder / "reference.py").write_text(
        "import torch\n\n\n"
        "def make_inputs(case, generator, count):\n"
        '    shape = (case["M"], case["N"])\n'
        f'    return {{"x": {draw}}}\n\n\n'
        + REFERENCE.replace("bias, keep", "bias").replace("(1 + keep.to(y.dtype)) * ", ""),
        encoding="utf-8",
    )
    task = load_task(folder)
    items = check_definition(task, Reference(task.reference_path), [task.seen[1]], torch.Generator().manual_seed(0))
    found = {item.name: item for item in items}
    assert found["reference"].outcome is CheckOutcome.PASSED, found["reference"].detail
    assert found["drawn at once"].outcome is outcome, found["drawn at once"].detail


@pytest.mark.parametrize(
    ("result", "outcome"),
    [("x * alpha", CheckOutcome.PASSED), ("x * alpha + x.mean(0)", CheckOutcome.FAILED)],
)
def test_rows_that_are_said_to_be_independent_are(tmp_path: Path, result: str, outcome: CheckOutcome) -> None:
    folder = write_task(tmp_path, task=TASK.replace("work:", "independent: M\nwork:"))
    (folder / "reference.py").write_text(f"def reference(x, alpha):\n    return {result}\n", encoding="utf-8")
    task = load_task(folder)
    items = check_definition(task, Reference(task.reference_path), task.seen[1:3], torch.Generator().manual_seed(0))
    (item,) = (item for item in items if item.name == "independent")
    assert item.outcome is outcome
