"""Tensors of more than 2³¹ elements: which ones a domain admits, and that a case must have one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.checks.tasks.offsets import admits_large, tensors_without_large_case
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import LARGE, Task
from arena.task.expression import Expression


def without_large_cases(task: Task) -> Task:
    """The task as it would be if nobody had thought of 32 bits."""
    return replace(task, heldout=tuple(case for case in task.heldout if case.kind != LARGE))


@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        ("fundamentals/subtract", {"x"}),  # short rows with a gap between them
        ("state_space/ssd_bmm", {"a", "b"}),
        ("moe/batched_moe", {"x", "weight", "out"}),
        ("attention/paged_prefix_prefill_alibi", {"key_cache", "value_cache"}),
        ("fundamentals/add", set()),
        ("fundamentals/gemm", set()),
    ],
)
def test_every_tensor_that_the_domain_makes_large_needs_a_case(name: str, tensors: set[str]) -> None:
    task = load_task(TASKS / "triton2triton" / name)
    assert not list(tensors_without_large_case(task))
    found = dict(tensors_without_large_case(without_large_cases(task)))
    assert set(found) == tensors
    assert admits_large(task) == bool(tensors)


def test_a_constraint_ends_the_search() -> None:
    task = without_large_cases(load_task(TASKS / "triton2triton/fundamentals/subtract"))
    assert list(tensors_without_large_case(task))
    narrow = (*task.constraints, Expression("M * (length + row_gap) <= 2 ** 31"))
    assert not list(tensors_without_large_case(replace(task, constraints=narrow)))
