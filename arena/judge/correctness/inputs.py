"""Fresh inputs for any number of sets at once: declared fills, and those a task builds itself."""

from __future__ import annotations

import random
import secrets
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from arena.errors import FileError
from arena.processes.protocol import ASCENDING, DESCENDING, ENDS_ONLY
from arena.task.definition import FLOATING, Arguments, Tensor
from arena.task.numerics.dtypes import torch_dtype
from arena.task.numerics.fills import draw, is_custom, zeros_will_do
from arena.task.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

_MOST_INDICES = 1 << 20
"""what has more elements than this is read by kernels alone"""
_MOST_BYTES_AT_ONCE = 1 << 30
"""of inputs that a task builds itself: while it does, it may hold them several times over, in wider types"""
_NONE, _ONE = 0.2, 0.6
"""up to the first share no input of a draw is uneven, up to the second a single one"""
_SPOILED = 0.5
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


@dataclass(frozen=True)
class SecretDraw:
    """One draw of a case: programs that are checked with the same one get the same inputs in the same order.

    Attributes:
        inputs: the bytes of the generator's state for the inputs.
        constants: the same for inputs that are constant.
        rows: the same for the rows of a `large` case that are compared.
        order: in which an emulation runs blocks and programs, see `arena.processes.protocol.Call`.
        order_again: the same for the call that is repeated.
    """

    inputs: bytes
    constants: bytes
    rows: bytes
    order: int
    order_again: int

    def generator(self, device: str) -> torch.Generator:
        """Return the generator of the inputs."""
        return secret_generator(device, lambda count: self.inputs[:count])

    def generator_of_constants(self, device: str) -> torch.Generator:
        """Return the generator of the constants."""
        return secret_generator(device, lambda count: self.constants[:count])

    def generator_of_rows(self) -> torch.Generator:
        """Return the generator of the rows."""
        return secret_generator("cpu", lambda count: self.rows[:count])


def secret_draws(count: int, source: random.Random | None = None) -> tuple[SecretDraw, ...]:
    """Return so many draws: blocks ascend, then descend, then are shuffled; a single draw has them descend.

    `source`: what to draw from where nothing has to be secret, so that the draws are the same again.
    """
    chance = source or random.SystemRandom()

    def state() -> bytes:
        return chance.randbytes(4 * _TWISTER_WORDS)

    def shuffled() -> int:
        """Return the seed of an order of blocks that is neither ascending nor descending."""
        return ENDS_ONLY + 1 + chance.randrange(1 << 62)

    orders = [ASCENDING, DESCENDING, *(shuffled() for _ in range(count))] if count > 1 else [DESCENDING]
    return tuple(SecretDraw(state(), state(), state(), order, shuffled()) for order in orders[:count])


def draw_secret(
    arguments: Arguments,
    reference: Reference,
    count: int,
    device: str,
    *,
    data: bool = True,
    constants: Mapping[str, torch.Tensor] = MappingProxyType({}),
    generator: torch.Generator | None = None,
) -> dict[str, torch.Tensor]:
    """`draw_inputs` from a state of its own: what a candidate is given, it cannot have foreseen from earlier data.

    `constants`: values that every set has, as `draw_constants` returned them. `generator`: that of a `SecretDraw`.
    """
    made = generator or secret_generator(device)
    drawn = draw_inputs(arguments, reference, count, made, data=data, spoiled=data)
    return drawn | {name: values.expand(count, *values.shape) for name, values in constants.items()}


def draw_constants(
    arguments: Arguments, reference: Reference, device: str, draw: SecretDraw | None = None
) -> dict[str, torch.Tensor]:
    """Return secret values of the constant inputs by name, each of the input's shape; nothing where there is none."""
    names = [name for name in arguments.task.constants if arguments.tensors[name] is not None]
    if not names:
        return {}
    generator = draw.generator_of_constants(device) if draw is not None else None
    drawn = draw_secret(arguments, reference, 1, device, generator=generator)
    return {name: drawn[name][0] for name in names}


def draw_inputs(
    arguments: Arguments,
    reference: Reference,
    count: int,
    generator: torch.Generator,
    *,
    data: bool = True,
    uneven: bool = True,
    spoiled: bool = False,
) -> dict[str, torch.Tensor]:
    """Every input tensor by name, shape (count, *shape); unpredictable, and as the task's fills say.

    Without `data`, declared fills of floating-point tensors, and of large ones of integers, are left out where zeros
    would do as well: for who needs no more than valid indices. So are custom fills without indices, or of more than
    1 GiB. `uneven`: see `arena.task.numerics.fills.draw`.
    `spoiled`: see `spoil`.
    """
    declared = [t for t in arguments.inputs if not is_custom(t.spec.fill) and not t.base]
    if not data:
        declared = [t for t in declared if not (_is_data(t) and zeros_will_do(t, arguments))]
    affected = _uneven([t for t in declared if t.dtype in FLOATING], generator) if uneven else frozenset()
    drawn = {t.name: draw(t, arguments, count, generator, uneven=t.name in affected) for t in declared}
    custom = [tensor for tensor in arguments.inputs if is_custom(tensor.spec.fill)]
    if custom and (data or _holds_indices(custom)):
        drawn |= _built(custom, arguments, reference, count, generator)
    if spoiled:
        spoil(drawn, arguments, reference, generator)
    return _as_stored(drawn, arguments)


def spoil(
    drawn: Mapping[str, torch.Tensor],
    arguments: Arguments,
    reference: Reference,
    generator: torch.Generator,
    share: float = _SPOILED,
) -> None:
    """Write NaN to a share of the floating-point elements that no result depends on, as memory that was in use holds.

    The others keep what was drawn: a maximum passes over NaN, and over large numbers it does not.
    """
    import torch

    if not reference.has_unread:
        return
    for name, mask in reference.unread(arguments, drawn).items():
        values = drawn.get(name)
        if values is None or not values.is_floating_point():
            continue
        if share < 1:
            mask = mask & (torch.rand(mask.shape, generator=generator, device=mask.device) < share)
        where = mask.view(*mask.shape, *[1] * (values.dim() - mask.dim()))
        if values.itemsize == 1:  # PyTorch fills eight bits as integers alone, on some devices
            code = torch.full((1,), torch.nan).to(values.dtype).view(torch.uint8).item()
            values.view(torch.uint8).masked_fill_(where, code)
        else:
            values.masked_fill_(where, torch.nan)


def _as_stored(drawn: dict[str, torch.Tensor], arguments: Arguments) -> dict[str, torch.Tensor]:
    """Return what memory can hold of drawn values: one value where a stride is 0, and that of its base for a view."""
    for tensor in arguments.inputs:
        values = drawn.get(tensor.name)
        if values is not None and tensor.stored < tensor.numel and not tensor.base:
            drawn[tensor.name] = values[(slice(None), *tensor.once)].expand_as(values).contiguous()
    for tensor in arguments.inputs:
        base = arguments.tensors.get(tensor.base)
        if base is not None and base.name in drawn:
            drawn[tensor.name] = _seen_through(tensor, base, drawn[base.name])
    return drawn


def _seen_through(view: Tensor, base: Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return the elements of a view into `base`, which fills its memory without gaps."""
    import torch

    count = len(values)
    memory = torch.empty((count, base.span), dtype=values.dtype, device=values.device)
    memory.as_strided((count, *base.shape), (base.span, *base.strides)).copy_(values)
    return memory.as_strided((count, *view.shape), (base.span, *view.strides), view.offset).contiguous()


def _built(
    custom: Sequence[Tensor], arguments: Arguments, reference: Reference, count: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """Return what the task's `make_inputs` gives, asked for some sets at a time."""
    import torch

    a_set = sum(tensor.numel * torch_dtype(tensor.dtype).itemsize for tensor in custom)
    most = max(1, _MOST_BYTES_AT_ONCE // max(1, a_set))
    if count <= most:
        return _asked(custom, arguments, reference, count, generator)
    kinds = {tensor.name: (tensor.shape, torch_dtype(tensor.dtype)) for tensor in custom}
    device = generator.device
    built = {name: torch.empty((count, *shape), dtype=dtype, device=device) for name, (shape, dtype) in kinds.items()}
    for first in range(0, count, most):
        part = _asked(custom, arguments, reference, min(most, count - first), generator)
        for name, values in part.items():
            built[name][first : first + most] = values
    return built


def _asked(
    custom: Sequence[Tensor], arguments: Arguments, reference: Reference, count: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    made = reference.make_inputs(arguments, generator, count)
    for tensor in custom:
        values, wanted = made.get(tensor.name), (count, *tensor.shape)
        if values is None or tuple(values.shape) != wanted:
            said = f"make_inputs gives no `{tensor.name}` of shape {list(wanted)}"
            raise FileError(arguments.task.reference_path, f"{arguments.case.id} ({arguments.case.label}): {said}")
    return {tensor.name: made[tensor.name].to(torch_dtype(tensor.dtype)) for tensor in custom}


def _uneven(tensors: Sequence[Tensor], generator: torch.Generator) -> frozenset[str]:
    """Return which inputs of a draw may be uneven: none in a fifth of the draws, one in two fifths, else all.

    One large input hides what the others do: of a chain of layers most would never count.
    """
    import torch

    lot, which = torch.rand(2, generator=generator, device=generator.device).tolist()
    if lot < _NONE or not tensors:
        return frozenset()
    if lot < _ONE:
        return frozenset({tensors[int(which * len(tensors))].name})
    return frozenset(tensor.name for tensor in tensors)


def _holds_indices(custom: Sequence[Tensor]) -> bool:
    """Return whether `make_inputs` gives indices, and not so much else that it fills the memory of the host."""
    held = sum(tensor.numel * tensor.item_bytes for tensor in custom)
    return held <= _MOST_BYTES_AT_ONCE and not all(map(_is_data, custom))


def _is_data(tensor: Tensor) -> bool:
    return tensor.dtype in FLOATING or tensor.numel > _MOST_INDICES
