"""Rows of a case that is too large for a reference: `large` cases are compared on a secret sample of them.

Along the axis that a task calls `independent`, no row of a result depends on other rows of the inputs. So the reference
of the sampled rows is that of a smaller case. Poison and canaries are checked everywhere, as in every case. For
integers and 8-bit floats, poison only tells whether anything was written: of these, other rows are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from arena.task.definition import Arguments, arguments

if TYPE_CHECKING:
    import torch

_MOST_ROWS, _MOST_ELEMENTS = 64, 1 << 27
"""of a sample: rows, and elements of the largest tensor"""
Tensors = Mapping[str, "torch.Tensor"]


def secret_rows(worked_out: Arguments, generator: torch.Generator) -> torch.Tensor:
    """Return distinct rows along the independent axis, ascending, int64: the first, the last, and some at random."""
    import torch

    size = int(worked_out.names[worked_out.task.independent])
    largest = max(tensor.numel for tensor in (*worked_out.inputs, *worked_out.outputs))
    count = max(1, min(_MOST_ROWS, _MOST_ELEMENTS * size // max(largest, 1)))
    chosen = torch.randint(0, size, (count,), generator=generator)
    return torch.tensor(sorted({0, size - 1, *chosen.tolist()}))


def sampled(worked_out: Arguments, rows: torch.Tensor) -> Arguments:
    """Return the smaller case that has these rows alone along the task's independent axis."""
    task, case = worked_out.task, worked_out.case
    return arguments(task, replace(case, values={**case.values, task.independent: len(rows)}))


def rows_of(worked_out: Arguments, tensors: Tensors, rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the tensors by name with these rows alone; one without the independent axis as it is.

    Args:
        worked_out: The whole case.
        tensors: Inputs or results of one set, each of its declared shape.
        rows: Indices along the independent axis, int64, on the CPU.
    """
    axis = worked_out.task.independent
    found = {}
    for spec in worked_out.task.tensors:
        if spec.name in tensors:
            whole = tensors[spec.name]
            place = next((at for at, size in enumerate(spec.shape) if axis in size.names), None)
            found[spec.name] = whole if place is None else whole.index_select(place, rows.to(whole.device))
    return found
