"""Fresh inputs for any number of sets: declared fills in batches, custom ones one by one."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from arena.errors import ArenaError
from arena.model.task import Arguments
from arena.numerics.dtypes import torch_dtype
from arena.numerics.fills import draw, is_custom
from arena.numerics.reference import Reference

if TYPE_CHECKING:
    import torch


def secret_generator(device: str) -> torch.Generator:
    """A generator that nobody else can reproduce."""
    import torch

    return torch.Generator(device=device).manual_seed(secrets.randbits(63))


def draw_inputs(
    arguments: Arguments, reference: Reference, count: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Every input tensor by name, shape (count, *shape); unpredictable, and as the task's fills say."""
    drawn = {t.name: draw(t, arguments, count, generator) for t in arguments.inputs if not is_custom(t.spec.fill)}
    if has_custom(arguments):
        drawn.update(_custom(arguments, reference, count, generator))
    return drawn


def has_custom(arguments: Arguments) -> bool:
    """Whether some inputs are built set by set in Python, which limits how many sets are worth having."""
    return any(is_custom(tensor.spec.fill) for tensor in arguments.inputs)


def _custom(
    arguments: Arguments, reference: Reference, count: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    import torch

    made = [reference.make_inputs(arguments, generator) for _ in range(count)]
    wanted = [tensor for tensor in arguments.inputs if is_custom(tensor.spec.fill)]
    for tensor in wanted:
        if any(tensor.name not in one or tuple(one[tensor.name].shape) != tensor.shape for one in made):
            raise ArenaError(f"{arguments.task.id}: make_inputs gives no {tensor.name} of shape {list(tensor.shape)}")
    return {
        tensor.name: torch.stack([one[tensor.name].to(torch_dtype(tensor.dtype)) for one in made]) for tensor in wanted
    }
