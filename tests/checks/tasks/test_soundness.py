"""What a definition must show, where chance decides whether one look shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from arena.checks.tasks import arithmetic
from arena.checks.tasks.soundness import Draw, check_definition, generator_for
from arena.results.check import CheckOutcome
from arena.task.corpus.task_folder import load_task
from arena.task.definition import arguments
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


def test_the_same_files_are_checked_on_the_same_draws(tmp_path: Path) -> None:
    """A check that passed today passes tomorrow; another case draws anew."""
    folder = write_task(tmp_path)
    task, again = load_task(folder), load_task(folder)
    reference, worked_out = Reference(task.reference_path), arguments(task, task.seen[1])
    first, second = (Draw.of(reference, worked_out, generator_for(one)) for one in (task, again))
    assert all(torch.equal(first.inputs[name], second.inputs[name]) for name in first.inputs)
    with (folder / "seen.yaml").open("a", encoding="utf-8") as file:
        file.write("# another\n")
    other = Draw.of(reference, worked_out, generator_for(load_task(folder)))
    assert not torch.equal(first.inputs["x"], other.inputs["x"])


@pytest.mark.parametrize(("shown_by", "outcome"), [(9, CheckOutcome.PASSED), (10**6, CheckOutcome.FAILED)])
def test_a_shorter_arithmetic_that_rarely_shows_gets_more_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown_by: int, outcome: CheckOutcome
) -> None:
    """Of outputs that few terms decide, one set in ten may be as good in half the digits."""
    task = load_task(write_task(tmp_path))
    reference = Reference(task.reference_path)
    asked = dict.fromkeys(("float32", "tf32"), 0)

    def error(draw: Draw, number_format: str, *, everywhere: bool = False) -> float:
        asked[number_format] += 1
        return 0.4 if number_format == "float32" else 2.0 if asked["tf32"] == 2 * shown_by else 0.9

    monkeypatch.setattr(arithmetic, "_error", error)
    draw = Draw.of(reference, arguments(task, task.seen[0]), generator_for(task))
    item = arithmetic.arithmetic_item([draw], generator_for(task))
    assert item is not None
    assert item.outcome is outcome
    assert asked["float32"] == 4
