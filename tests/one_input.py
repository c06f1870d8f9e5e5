"""A made-up task with one input, for tests of fills and their gallery (tools/figures/drawings.py)."""

from __future__ import annotations

from pathlib import Path

from arena.results.record import Split
from arena.task.definition import Arguments, Axis, Case, Fill, Task, TaskType, TensorSpec, Work, arguments
from arena.task.expression import Expression


def one_input(fill: Fill, shape: tuple[int, ...], dtype: str) -> Arguments:
    spec = TensorSpec("x", tuple(Expression(str(size)) for size in shape), dtype, fill=fill)
    case = Case("seen-01", Split.SEEN, "", {"M": 12})
    task = Task(
        id="hip2hip/a/b",
        task_type=TaskType.HIP2HIP,
        suite="a",
        name="b",
        summary="",
        entry="b",
        axes=(Axis("M", "", 1, 99),),
        dtypes={},
        constraints=(),
        inputs=(spec,),
        outputs=(),
        work=Work(Expression("1")),
        seen=(case,),
        heldout=(),
        path=Path(),
        definition=Path(),
        content_hash="",
    )
    return arguments(task, case)
