"""Fresh inputs for any number of sets at once: declared fills, and those a task builds itself."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from arena.errors import ArenaError
from arena.model.task import FLOATING, Arguments, Tensor
from arena.numerics.dtypes import torch_dtype
from arena.numerics.fills import draw, is_custom, zeros_will_do
from arena.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

_MOST_INDICES = 1 << 20
"""what has more elements than this is looked at by kernels alone"""


def secret_generator(device: str) -> torch.Generator:
    """A generator that nobody else can reproduce."""
    import torch

    return torch.Generator(device=device).manual_seed(secrets.randbits(63))


def draw_inputs(
    arguments: Arguments, reference: Reference, count: int, generator: torch.Generator, *, data: bool = True
) -> dict[str, torch.Tensor]:
    """Every input tensor by name, shape (count, *shape); unpredictable, and as the task's fills say.

    Without `data`, declared fills of floating-point tensors, and of large ones of integers, are left out where zeros
    would do as well: for who needs no more than valid indices.
    """
    declared = [t for t in arguments.inputs if not is_custom(t.spec.fill)]
    if not data:
        declared = [t for t in declared if not (_is_data(t) and zeros_will_do(t, arguments))]
    drawn = {t.name: draw(t, arguments, count, generator) for t in declared}
    custom = [tensor for tensor in arguments.inputs if is_custom(tensor.spec.fill)]
    made = reference.make_inputs(arguments, generator, count) if custom else {}
    for tensor in custom:
        values, wanted = made.get(tensor.name), (count, *tensor.shape)
        if values is None or tuple(values.shape) != wanted:
            raise ArenaError(f"{arguments.task.id}: make_inputs gives no `{tensor.name}` of shape {list(wanted)}")
        drawn[tensor.name] = values.to(torch_dtype(tensor.dtype))
    return drawn


def _is_data(tensor: Tensor) -> bool:
    return tensor.dtype in FLOATING or tensor.numel > _MOST_INDICES
