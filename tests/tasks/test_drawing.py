"""What it costs to draw a task's inputs: every round of a timing needs hundreds of sets."""

from __future__ import annotations

import pytest

from arena.judge.inputs import draw_inputs, secret_generator
from arena.model.task import arguments
from arena.numerics.reference import Reference
from arena.taskfile.corpus import TASKS, load_task, task_ids
from tests.counting import Counted

FEW, MANY = 2, 66


@pytest.mark.parametrize("name", task_ids())
def test_many_sets_take_no_more_operations_than_few(name: str) -> None:
    """A loop over sets is invisible on a CPU, and takes most of a GPU's time: each operation is a launch."""
    task = load_task(TASKS / name)
    smallest = min((arguments(task, case) for case in task.seen), key=lambda case: case.num_bytes)
    reference, generator = Reference(task.reference_path), secret_generator("cpu")
    counts = []
    for sets in (FEW, MANY):
        with Counted() as counted:
            draw_inputs(smallest, reference, sets, generator)
        counts.append(counted.operations)
    assert counts[1] < counts[0] + (MANY - FEW), "an operation or more for each set"
