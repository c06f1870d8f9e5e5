"""Fresh inputs for any number of sets at once: declared fills, and those a task builds itself."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from arena.errors import ArenaError
from arena.model.task import FLOATING, Arguments, Tensor
from arena.numerics.dtypes import torch_dtype
from arena.numerics.fills import draw, is_custom, zeros_will_do
from arena.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

_MOST_INDICES = 1 << 20
"""what has more elements than this is read by kernels alone"""
_NONE, _ONE = 0.2, 0.6
"""up to the first share no input of a draw is uneven, up to the second a single one"""
_TWISTER_WORDS = 624
_TWISTER_STATE = slice(24, 24 + 8 * _TWISTER_WORDS)
"""where a CPU generator's state has the words of its Mersenne twister, eight bytes for each (ATen's legacy layout)"""


def secret_generator(device: str, entropy: Callable[[int], bytes] = secrets.token_bytes) -> torch.Generator:
    """Return a generator in a secret state, for one draw: candidates see what it drew, and the next has another.

    A seed would not do. On the CPU `manual_seed` takes 32 bits of it, which can be tried one by one, and 624 numbers
    tell a twister's state; here all its 19968 bits are fresh. On GPUs, Philox has 64 bits of key and 60 of offset.
    """
    import torch

    generator = torch.Generator(device=device)
    state = generator.get_state()
    if generator.device.type == "cpu":
        words = torch.frombuffer(bytearray(entropy(4 * _TWISTER_WORDS)), dtype=torch.int32)
        state[_TWISTER_STATE].view(torch.int64).copy_(words).bitwise_and_(0xFFFFFFFF)
    else:
        key, offset = struct.unpack("<QQ", entropy(16))
        packed = struct.pack("<QQ", key, offset >> 4 << 2)  # Philox counts in fours
        state = torch.frombuffer(bytearray(packed), dtype=torch.uint8)
    generator.set_state(state)
    return generator


def draw_secret(
    arguments: Arguments, reference: Reference, count: int, device: str, *, data: bool = True
) -> dict[str, torch.Tensor]:
    """`draw_inputs` from a state of its own: what a candidate is given, it cannot have foreseen from earlier data."""
    return draw_inputs(arguments, reference, count, secret_generator(device), data=data)


def draw_inputs(
    arguments: Arguments,
    reference: Reference,
    count: int,
    generator: torch.Generator,
    *,
    data: bool = True,
    uneven: bool = True,
) -> dict[str, torch.Tensor]:
    """Every input tensor by name, shape (count, *shape); unpredictable, and as the task's fills say.

    Without `data`, declared fills of floating-point tensors, and of large ones of integers, are left out where zeros
    would do as well: for who needs no more than valid indices. `uneven`: see `arena.numerics.fills.draw`.
    """
    declared = [t for t in arguments.inputs if not is_custom(t.spec.fill)]
    if not data:
        declared = [t for t in declared if not (_is_data(t) and zeros_will_do(t, arguments))]
    affected = _uneven([t for t in declared if t.dtype in FLOATING], generator) if uneven else frozenset()
    drawn = {t.name: draw(t, arguments, count, generator, uneven=t.name in affected) for t in declared}
    custom = [tensor for tensor in arguments.inputs if is_custom(tensor.spec.fill)]
    made = reference.make_inputs(arguments, generator, count) if custom else {}
    for tensor in custom:
        values, wanted = made.get(tensor.name), (count, *tensor.shape)
        if values is None or tuple(values.shape) != wanted:
            raise ArenaError(f"{arguments.task.id}: make_inputs gives no `{tensor.name}` of shape {list(wanted)}")
        drawn[tensor.name] = values.to(torch_dtype(tensor.dtype))
    return drawn


def _uneven(tensors: Sequence[Tensor], generator: torch.Generator) -> frozenset[str]:
    """Which inputs of a draw may be uneven: none in a fifth of the draws, one in two fifths, else all.

    One large input hides what the others do: of a chain of layers most would never count.
    """
    import torch

    lot, which = torch.rand(2, generator=generator, device=generator.device).tolist()
    if lot < _NONE or not tensors:
        return frozenset()
    if lot < _ONE:
        return frozenset({tensors[int(which * len(tensors))].name})
    return frozenset(tensor.name for tensor in tensors)


def _is_data(tensor: Tensor) -> bool:
    return tensor.dtype in FLOATING or tensor.numel > _MOST_INDICES
