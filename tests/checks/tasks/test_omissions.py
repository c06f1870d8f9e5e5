"""Omission mutants: which there are, which survive, and which compute the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from arena.checks.tasks.omissions import EQUIVALENT, discriminating_cases, omissions_item, try_omissions
from arena.results.check import CheckOutcome, MutantFate
from arena.results.verdict import Status
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from arena.task.numerics.reference import Reference
from tests.task.corpus.folders import TASK, write_task

ROW_SUM = TASK.replace("y: {shape: [M, N], dtype: $dtype}\nwork", "y: {shape: [M], dtype: $dtype}\nwork")


def task(tmp_path: Path, reference: str, text: str = TASK) -> Task:
    folder = write_task(tmp_path, task=text)
    (folder / "reference.py").write_text(reference, encoding="utf-8")
    return load_task(folder)


def fates(one: Task) -> dict[str, MutantFate]:
    done: list[tuple[int, int]] = []
    generator = torch.Generator().manual_seed(5)
    found = try_omissions(one, Reference(one.reference_path), generator, lambda *now: done.append(now))
    assert done == [(number, len(done)) for number in range(len(done))], "a judge that is silent counts as lost"
    assert len(done) >= len(found) > 0
    return {fate.name: fate for fate in found}


def test_a_sum_needs_every_part(tmp_path: Path) -> None:
    found = fates(task(tmp_path, "def reference(x, alpha):\n    return (x * alpha).sum(-1)\n", ROW_SUM))
    assert {"x:0 subset", "x:1 subset", "x:1 suffix", "x:1 prefix", "x small", "x zeros", "x ones"} <= set(found)
    assert {fate.operator for fate in found.values() if fate.name.startswith("alpha")} == {"zeros", "ones"}
    assert [fate.name for fate in found.values() if fate.survived] == []


@pytest.mark.slow
def test_what_nobody_has_to_read_is_equivalent(tmp_path: Path) -> None:
    found = fates(task(tmp_path, "def reference(x, alpha):\n    return (x * alpha)[:, :4].sum(-1)\n", ROW_SUM))
    assert found["x:1 suffix"].equivalent == EQUIVALENT
    assert found["x:1 prefix"].status is Status.WRONG_RESULT


@pytest.mark.slow
def test_a_wide_tolerance_lets_mutants_survive_and_the_item_names_them(tmp_path: Path) -> None:
    wide = ROW_SUM.replace(
        "y: {shape: [M], dtype: $dtype}", "y: {shape: [M], dtype: $dtype, compare: {close: {atol: 9}}}"
    )
    found = fates(task(tmp_path, "def reference(x, alpha):\n    return (x * alpha).sum(-1)\n", wide))
    assert found["x:1 suffix"].survived
    item = omissions_item(tuple(found.values()))
    assert item.outcome is CheckOutcome.FAILED
    assert "x:1 suffix (the last eighth of x along dimension 1 in M=" in item.detail


@pytest.mark.slow
def test_an_average_hides_what_rows_of_one_scale_leave_out(tmp_path: Path) -> None:
    """Of even data (a uniform fill) a mean needs an eighth less: the survivors say so."""
    even = "x: {shape: [M, N], dtype: $dtype, fill: {uniform: [4, 4.0001]}}"
    text = ROW_SUM.replace("x: {shape: [M, N], dtype: $dtype, fill: normal}", even)
    found = fates(task(tmp_path, "def reference(x, alpha):\n    return (x * alpha).mean(-1)\n", text))
    assert found["x:1 suffix"].survived
    assert found["x:1 subset"].survived


def test_rounding_counts_where_the_task_forbids_it(tmp_path: Path) -> None:
    """Of sums: an element-wise kernel gains nothing by it."""
    found = fates(task(tmp_path, "def reference(x, alpha):\n    return (x * alpha).cumsum(-1)\n"))
    assert found["x int8"].status is found["x fp8"].status is Status.WRONG_RESULT
    (tmp_path / "other").mkdir()
    assert "x int8" not in fates(task(tmp_path / "other", "def reference(x, alpha):\n    return x * alpha\n"))


def test_cases_are_small_ones_of_each_dtype_and_a_large_one(tmp_path: Path) -> None:
    one = task(tmp_path, "def reference(x, alpha):\n    return x * alpha\n")
    chosen = discriminating_cases(one)
    assert {case.values["dtype"] for case in chosen} == {"float32", "float16"}
    assert any(case.values["N"] == 1024 for case in chosen)
