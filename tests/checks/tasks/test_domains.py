"""Cases must draw what inputs may hold: large numbers, both signs, and half of a domain that a task declares."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from arena.checks.tasks.domains import domain_items
from arena.errors import FileError
from arena.results.check import CheckItem, CheckOutcome
from arena.runs.service.task_text import argument_views
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from arena.task.numerics.reference import Reference
from arena.task.rules import RuleLevel
from tests.checks.tasks.affine import HELDOUT, PLACE, TASK, Write

CASE = "- {{kind: values, M: 60, N: 40, dtype: float16, {more}}}\n"
WIDE = ", gain: {uniform: [-600, 600]}"
FAR = CASE.format(more="fills: {x: {normal_even: [0, 600]}, offset: {normal_even: [0, 600]}" + WIDE + "}")
GAIN = "gain: {shape: [M], dtype: $dtype, fill: {uniform: [1, 2]}"
SCALED = TASK.replace("outputs:", "  factor: {scalar: float32, value: 1.0}\noutputs:")
REFERENCE = "def reference(x, gain, offset, factor):\n    return factor * x * gain[:, None] + offset\n"


@pytest.fixture
def folder(write: Write) -> Path:
    return write({}) / PLACE


def loaded(folder: Path, task: str = TASK, heldout: str = HELDOUT, reference: str = "") -> Task:
    """The affine task with other files."""
    files = {"task.yaml": task, "heldout.yaml": heldout} | ({"reference.py": reference} if reference else {})
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return load_task(folder)


def checked(task: Task, level: RuleLevel = RuleLevel.STRICT) -> dict[str, CheckItem]:
    generator = torch.Generator().manual_seed(0)
    return {item.name: item for item in domain_items(task, Reference(task.reference_path), level, generator)}


def outcomes(task: Task) -> dict[str, CheckOutcome]:
    return {name.removeprefix("domain of "): item.outcome for name, item in checked(task).items()}


def test_every_input_must_reach_far(folder: Path) -> None:
    task = loaded(folder)
    assert set(outcomes(task).values()) == {CheckOutcome.FAILED}
    detail = checked(task)["domain of x"].detail
    assert detail.startswith("x is from -") and "draw -256 or less" in detail and "declare `domain`" in detail
    assert set(outcomes(loaded(folder, heldout=HELDOUT + FAR)).values()) == {CheckOutcome.PASSED}


def test_bfloat16_must_hold_what_float16_cannot(folder: Path) -> None:
    wide = TASK.replace("[float32, float16]", "[float32, float16, bfloat16]")
    near = HELDOUT + FAR + FAR.replace("float16", "bfloat16")
    detail = checked(loaded(folder, wide, near))["domain of x"].detail
    assert "in bfloat16" in detail and "draw -6.55e+04 or less" in detail
    far = FAR.replace("float16", "bfloat16").replace("600", "1.0e+5")
    assert set(outcomes(loaded(folder, wide, HELDOUT + FAR + far)).values()) == {CheckOutcome.PASSED}


def test_half_of_a_domain_is_enough(folder: Path) -> None:
    kept = HELDOUT + FAR.replace(WIDE, "")
    for domain, outcome in (
        ("[0.5, 3]", CheckOutcome.PASSED),
        ("[0.5, 4]", CheckOutcome.FAILED),
        ("[0, .inf]", CheckOutcome.FAILED),
        ("[-0.5, 3]", CheckOutcome.FAILED),
    ):
        task = loaded(folder, TASK.replace(GAIN, f"{GAIN}, domain: {domain}"), kept)
        assert outcomes(task)["gain"] is outcome, domain


def test_a_domain_that_ends_at_zero_has_a_case_with_zeros(folder: Path) -> None:
    """A kernel that divides by a scale is right for all others."""
    text = TASK.replace(GAIN, f"{GAIN}, domain: [0, 3]")
    task = loaded(folder, text, HELDOUT + FAR.replace(WIDE, ""))
    assert outcomes(task)["gain"] is CheckOutcome.FAILED and "draw exactly 0" in checked(task)["domain of gain"].detail
    zeros = FAR.replace(WIDE, ", gain: {bernoulli: 0.5}")
    assert outcomes(loaded(folder, text, HELDOUT + zeros))["gain"] is CheckOutcome.PASSED
    away = TASK.replace(GAIN, f"{GAIN}, domain: [1.0e-9, 3]")
    assert outcomes(loaded(folder, away, HELDOUT + FAR.replace(WIDE, "")))["gain"] is CheckOutcome.PASSED


def test_the_ends_of_a_reach_are_those_of_what_was_drawn(folder: Path) -> None:
    detail = checked(loaded(folder))["domain of gain"].detail
    assert detail.startswith("gain is from 1"), "0 was not drawn"


def test_no_case_may_leave_the_domain(folder: Path) -> None:
    task = loaded(folder, TASK.replace(GAIN, f"{GAIN}, domain: [0, 1.5]"))
    assert "its domain is [0.0, 1.5]" in checked(task)["domain of gain"].detail


def test_a_scalar_must_have_both_signs(folder: Path) -> None:
    negative = CASE.format(more="factor: -0.5")
    assert outcomes(loaded(folder, SCALED, HELDOUT, REFERENCE))["factor"] is CheckOutcome.FAILED
    assert outcomes(loaded(folder, SCALED, HELDOUT + negative, REFERENCE))["factor"] is CheckOutcome.PASSED
    positive = SCALED.replace("value: 1.0", "value: 1.0, domain: [0.5, .inf]")
    assert outcomes(loaded(folder, positive, HELDOUT, REFERENCE))["factor"] is CheckOutcome.PASSED


def test_a_scalar_whose_domain_ends_at_0_must_be_0_somewhere(folder: Path) -> None:
    """A kernel may take 0 for a scalar that is not given."""
    task, zero = SCALED.replace("value: 1.0", "value: 1.0, domain: [0, .inf]"), CASE.format(more="factor: 0.0")
    assert outcomes(loaded(folder, task, HELDOUT, REFERENCE))["factor"] is CheckOutcome.FAILED
    assert outcomes(loaded(folder, task, HELDOUT + zero, REFERENCE))["factor"] is CheckOutcome.PASSED


def test_a_reason_is_taken_and_other_corpora_are_not_held_to_it(folder: Path) -> None:
    declared = f"{TASK}exceptions:\n  domain of gain: a rate between two sums\n"
    assert checked(loaded(folder, declared))["domain of gain"].outcome is CheckOutcome.DECLARED
    assert checked(loaded(folder), RuleLevel.OWN)["domain of x"].outcome is CheckOutcome.NOT_CHECKED


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (GAIN, f"{GAIN}, domain: [2, 1]", "is empty"),
        (GAIN, f"{GAIN}, domain: [0, infinite]", "domain"),
        ("value: 1.0", "value: 1.0, domain: [2, .inf]", "outside"),
    ],
)
def test_a_domain_is_checked_when_the_task_is_loaded(folder: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        loaded(folder, SCALED.replace(old, new), reference=REFERENCE)


def test_a_case_keeps_to_the_domain_of_a_scalar(folder: Path) -> None:
    with pytest.raises(FileError, match=r"-0\.5 is outside"):
        task = SCALED.replace("value: 1.0", "value: 1.0, domain: [0, .inf]")
        loaded(folder, task, HELDOUT + CASE.format(more="factor: -0.5"), REFERENCE)


@pytest.mark.parametrize(
    ("domain", "words"),
    [("[0, 1]", "from 0 to 1"), ("[0, .inf]", "at least 0"), ("[-.inf, 0]", "at most 0")],
)
def test_candidates_are_told_the_domain(folder: Path, domain: str, words: str) -> None:
    task = loaded(folder, TASK.replace(GAIN, f"{GAIN}, domain: {domain}"))
    assert words in {view.name: view.about for view in argument_views(task)}["gain"]
