"""The shared buffer of one case: `count` sets of arguments, poisoned, guarded, and seen as batched views.

    | edge | tensor 0: offset, set 0 | guard | offset, set 1 | guard | … | tensor 1: offset, set 0 | guard | … | edge |

Everything that is neither an input's nor an output's element is canaries: NaN, and unlikely integers.
Large constants of modules lie there once, for all sets: no cache keeps them from one call to the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arena.judge.correctness.inputs import secret_generator
from arena.judge.correctness.poison import Poison, fresh_poison, integer_dtype
from arena.platforms.base import Platform, SharedBuffer
from arena.platforms.toolchains.task_header import passed_axes
from arena.processes.protocol import Argument, Bind, ModuleCall, NullArgument, ScalarArgument, TensorArgument
from arena.task.definition import Arguments, ScalarSpec, Tensor
from arena.task.fp8 import FP8
from arena.task.numerics.dtypes import torch_dtype

if TYPE_CHECKING:
    import torch

EVERY = slice(None)
_ALIGN = 256
_LARGE_BYTES = 1 << 30
_EDGE_BYTES = 64 * 1024
# As float16, as bfloat16, and four or two of them as float64 or float32, all of these are NaN: [low, high).
_NAN_HALVES = (0x7FF1, 0x8000)
_SIGNALLING_HALVES = {
    "float32": (0x7F81, 0x7FC0),
    "bfloat16": (0x7F81, 0x7FC0),
    "float16": (0x7D01, 0x7E00),
    "float64": (0x7FF1, 0x7FF8),
}
"""NaN that arithmetic makes quiet: on many processors the others keep their bits if they are, say, divided in place"""


@dataclass(frozen=True)
class Place:
    """The place of a tensor's sets: bytes to the first one, and from one to the next; 0 where all are the same."""

    offset: int
    pitch: int


def lies_once(arguments: Arguments) -> frozenset[str]:
    """Return the constants that all sets of a case have in the same memory; modules keep one copy of them."""
    constants = [tensor for tensor in arguments.inputs if tensor.spec.constant and not tensor.base]
    num_bytes = sum(tensor.numel * tensor.item_bytes for tensor in constants)
    shared = arguments.task.takes_modules and num_bytes >= _LARGE_BYTES
    return frozenset(tensor.name for tensor in constants) if shared else frozenset()


def lay_out(arguments: Arguments, count: int, apart: int = 0) -> tuple[dict[str, Place], int]:
    """Places of all tensors for `count` sets, with `apart` bytes more between two, and the buffer's size in bytes."""
    places: dict[str, Place] = {}
    at = _EDGE_BYTES
    tensors, once = (*arguments.inputs, *arguments.outputs), lies_once(arguments)
    for tensor in tensors:
        if not tensor.base:
            whole, alone = _whole_bytes(tensor), tensor.name in once
            places[tensor.name] = Place(at + tensor.offset * tensor.item_bytes, 0 if alone else whole)
            at += whole * (1 if alone else count) + apart
    for tensor in tensors:
        if tensor.base:
            place = places[tensor.base]
            places[tensor.name] = replace(place, offset=place.offset + tensor.offset * tensor.item_bytes)
    return places, at + _EDGE_BYTES


def _whole_bytes(tensor: Tensor) -> int:
    """Bytes of one set of a tensor, from what comes before its offset to the end of its guard."""
    return -(-(tensor.offset + tensor.span) * tensor.item_bytes // _ALIGN) * _ALIGN + _ALIGN


def has_addresses(arguments: Arguments) -> bool:
    """Return whether the worker has to turn offsets into addresses of its own when there are new data."""
    fills = (tensor.spec.fill for tensor in arguments.inputs)
    return any(fill is not None and fill.kind == "addresses" for fill in fills)


class Sets:
    """`count` sets of one case's arguments in memory that the worker shares: in `arena`, where it is given and fits."""

    def __init__(
        self,
        platform: Platform,
        arguments: Arguments,
        count: int,
        arena: SharedBuffer | None = None,
        apart: int = 0,
    ) -> None:
        """`apart`: bytes between two tensors, which take no memory where nothing is written to them."""
        self.arguments, self.count = arguments, count
        self._places, num_bytes = lay_out(arguments, count, apart)
        self._owned = arena is None or arena.handle.num_bytes < num_bytes
        self._buffer = platform.allocate(num_bytes) if arena is None or self._owned else arena
        self._poison: dict[str, Poison] = {}
        self.raw = self._buffer.tensor[:num_bytes]

    def close(self) -> None:
        """Give the memory back, unless it lies in an arena; the worker has unmapped it, or is dead."""
        del self.raw
        if self._owned:
            self._buffer.close()

    @property
    def files(self) -> list[int]:
        """Descriptors to send beside `bind_message`."""
        return [] if self._buffer.file is None else [self._buffer.file]

    def bind_message(self) -> Bind:
        """Return what the worker needs to find every argument."""
        task = self.arguments.task
        axes = {axis.name: int(self.arguments.names[axis.name]) for axis in task.axes}
        passed = tuple(axes[axis.name] for axis in passed_axes(task))
        dtypes = {name: task.format(str(self.arguments.case.values[name])) for name in task.dtypes}
        listed = tuple(self._argument(spec.name) for spec in (*task.inputs, *task.outputs))
        extras: dict[str, bool | int | float | str] = {FP8: task.fp8, **axes, **dtypes}
        return Bind(self._buffer.handle, self.count, listed, passed, extras, _module_call(self.arguments))

    def view(self, name: str) -> torch.Tensor:
        """All sets of one tensor: shape (count, *shape), strided over the buffer."""
        tensor = self.arguments.tensors[name]
        assert tensor is not None
        return self._strided(tensor, torch_dtype(tensor.dtype))

    def bits(self, tensor: Tensor) -> torch.Tensor:
        """All sets of a tensor as signed integers: shape (count, *shape)."""
        return self._strided(tensor, integer_dtype(tensor.item_bytes))

    def offset(self, name: str) -> int:
        """Return where the first set of a tensor starts, in bytes."""
        return self._places[name].offset

    def write(self, inputs: Mapping[str, torch.Tensor], part: slice = EVERY) -> None:
        """New values for every input of the sets in `part`, mutable ones included; those of a view are its base's."""
        for name, values in inputs.items():
            tensor = self.arguments.tensors[name]
            assert tensor is not None
            if tensor.base:
                continue
            part_of = part if self._places[name].pitch else slice(1)
            words = self._words(tensor)
            if words is not None and _in_words(values, tensor, words.dtype.itemsize):
                words[part_of].copy_(values.view(-1).view(words.dtype).view(-1, *words.shape[1:])[part_of])
            else:
                stored = (part_of, *tensor.once)
                self.view(name)[stored].copy_(values[stored])

    def scatter_canaries(self) -> None:
        """NaN everywhere, as whatever float it is read, of random payload: reading gaps and guards spoils a result."""
        import torch

        generator = secret_generator(str(self.raw.device))
        self.raw.view(torch.int16).random_(*_NAN_HALVES, generator=generator)
        for tensor in self._stored():
            if tensor.dtype in _SIGNALLING_HALVES:
                _scatter(self._wholes(tensor, self.raw).view(torch.int16), tensor, generator)

    def renew_canaries(self) -> None:
        """Draw canaries anew around every set, which is to be written afterwards: data among gaps are overwritten.

        A stray write that leaves the same value each time changes nothing from the second time on. In all sets at once:
        where only those had new ones that will be compared, a candidate that reads them would know which these are.
        """
        import torch

        halves = self.raw.view(torch.int16)
        generator = secret_generator(str(self.raw.device))
        for edge in (halves[: _EDGE_BYTES // 2], halves[-_EDGE_BYTES // 2 :]):
            edge.random_(*_NAN_HALVES, generator=generator)
        for tensor in self._stored():
            before, sets = tensor.offset * tensor.item_bytes, self._wholes(tensor, self.raw).view(torch.int16)
            if tensor.span > tensor.stored:
                _scatter(sets, tensor, generator)
            else:
                _scatter(sets[:, : -(-before // 2)], tensor, generator)
                _scatter(sets[:, (before + tensor.span * tensor.item_bytes) // 2 :], tensor, generator)

    def poison(self, part: slice = EVERY) -> None:
        """Overwrite every output element with a fresh secret pattern: a NaN payload where the dtype has room.

        The pattern of sets outside of `part` is forgotten: they must be poisoned again before they are checked.
        """
        for tensor in self.arguments.outputs:
            poison = self._poison[tensor.name] = fresh_poison(tensor, self.raw.device)
            self._fill(tensor, part, poison)

    def wipe(self, part: slice) -> None:
        """Overwrite all that a call may have answered with, mutable inputs too, once it has been checked.

        The sides change places, and a candidate keeps what it has mapped: it would find the baseline's answers.
        """
        self.poison(part)
        for tensor in self.arguments.inputs:
            if tensor.spec.mutable:
                self._fill(tensor, part, None)

    def unwritten(self, used: Sequence[int]) -> str:
        """The name of an output that still holds poison in one of the sets `used`, or nothing."""
        if not used:
            return ""
        import torch

        first, end = min(used), max(used) + 1
        telling = [tensor for tensor in self.arguments.outputs if self._poison[tensor.name].is_telling]
        bits = [self.bits(tensor)[first:end] for tensor in telling]
        doubts = [self._poison[tensor.name].may_be_left(each) for tensor, each in zip(telling, bits, strict=True)]
        doubted = torch.stack(doubts).tolist() if doubts else []
        for tensor, each, doubt in zip(telling, bits, doubted, strict=True):
            if doubt and bool(self._poison[tensor.name].is_left(each)[[index - first for index in used]].any()):
                return tensor.name
        return ""

    def held_poison(self, name: str, index: int) -> torch.Tensor:
        """For one set: True at the elements of output `name` that still hold poison."""
        tensor = self.arguments.tensors[name]
        assert tensor is not None
        return self.bits(tensor)[index] == self._poison[name].bits

    def outside(self, index: int, raw: torch.Tensor | None = None) -> torch.Tensor:
        """Return a copy of the bytes that no element of set `index` has: around it, in its gaps, and at both edges.

        Shape (bytes,), dtype uint8. Elements among gaps count as 0; a tensor that lies in another adds nothing. `raw`:
        an earlier copy of the buffer to take them from.
        """
        import torch

        raw = self.raw if raw is None else raw
        parts = [raw[:_EDGE_BYTES], raw[-_EDGE_BYTES:]]
        for tensor in self._stored():
            item = tensor.item_bytes
            before, length = tensor.offset * item, tensor.span * item
            whole = self._wholes(tensor, raw)[index if self._places[tensor.name].pitch else 0]
            parts += [whole[:before], whole[before + length :]]
            if tensor.span > tensor.stored:
                gaps = whole[before : before + length].clone()
                strides = (*(stride * item for stride in tensor.strides), 1)
                gaps.as_strided((*tensor.shape, item), strides).zero_()
                parts.append(gaps)
        return torch.cat(parts)

    def element_mask(self, name: str) -> torch.Tensor:
        """For set 0: True at the bytes of the buffer that are elements of the tensor `name`."""
        import torch

        tensor = self.arguments.tensors[name]
        assert tensor is not None
        mask = torch.zeros_like(self.raw, dtype=torch.bool)
        place = self._places[name]
        view = torch.as_strided(
            mask,
            (*tensor.shape, tensor.item_bytes),
            (*(stride * tensor.item_bytes for stride in tensor.strides), 1),
            place.offset,
        )
        view.fill_(True)
        return mask

    def _stored(self) -> list[Tensor]:
        """Tensors that do not lie in another."""
        return [tensor for tensor in (*self.arguments.inputs, *self.arguments.outputs) if not tensor.base]

    def _wholes(self, tensor: Tensor, raw: torch.Tensor) -> torch.Tensor:
        """The bytes of a tensor's sets, from what comes before its offset to the end of its guard.

        Shape (count, bytes), or (1, bytes) of what lies there once.
        """
        place, whole = self._places[tensor.name], _whole_bytes(tensor)
        first, count = place.offset - tensor.offset * tensor.item_bytes, self.count if place.pitch else 1
        return raw[first : first + count * whole].view(count, whole)

    def _argument(self, name: str) -> Argument:
        task = self.arguments.task
        spec = next(spec for spec in (*task.inputs, *task.outputs) if spec.name == name)
        if isinstance(spec, ScalarSpec):
            return ScalarArgument(name, spec.dtype, self.arguments.scalar(spec))
        tensor = self.arguments.tensors[name]
        if tensor is None:
            return NullArgument(name)
        place = self._places[name]
        fill = spec.fill
        addresses_of = str(fill.arguments["of"]) if fill is not None and fill.kind == "addresses" else ""
        return TensorArgument(
            name=name,
            dtype=tensor.dtype,
            shape=tensor.shape,
            strides=tensor.strides,
            offset=place.offset,
            pitch=place.pitch,
            addresses_of=addresses_of,
        )

    def _words(self, tensor: Tensor) -> torch.Tensor | None:
        """All sets of a tensor as integers of up to 8 bytes: shape (count, words); None where its elements have gaps.

        A GPU copies and fills as many elements a second of 8 bytes as of 2.
        """
        import torch

        place, num_bytes = self._places[tensor.name], tensor.numel * tensor.item_bytes
        if not num_bytes or not self.bits(tensor)[0].is_contiguous():
            return None
        width = math.gcd(8, place.offset, num_bytes)
        return torch.as_strided(
            self.raw.view(integer_dtype(width)),
            (self.count, num_bytes // width),
            (place.pitch // width, 1),
            place.offset // width,
        )

    def _fill(self, tensor: Tensor, part: slice, poison: Poison | None) -> None:
        """Overwrite every element of the sets in `part` with poison, or with zeros."""
        words = self._words(tensor)
        written = self.bits(tensor) if words is None else words
        if poison is None:
            written[part].zero_()
        elif isinstance(poison.bits, int):
            written[part].fill_(poison.repeated(written.element_size()))
        else:
            written[part].copy_(poison.bits if words is None else poison.bits.view(-1).view(words.dtype))

    def _strided(self, tensor: Tensor, dtype: torch.dtype) -> torch.Tensor:
        import torch

        place, item = self._places[tensor.name], tensor.item_bytes
        return torch.as_strided(
            self.raw.view(dtype),
            (self.count, *tensor.shape),
            (place.pitch // item, *tensor.strides),
            place.offset // item,
        )


def _in_words(values: torch.Tensor, tensor: Tensor, num_bytes: int) -> bool:
    """Return whether values of a tensor's dtype lie side by side, from a multiple of `num_bytes` in their own memory.

    What `make_inputs` returns may be a part of something larger, such as `bounds[:, 1:]`.
    """
    begins = values.storage_offset() * tensor.item_bytes
    return values.is_contiguous() and values.dtype == torch_dtype(tensor.dtype) and begins % num_bytes == 0


def _module_call(arguments: Arguments) -> ModuleCall | None:
    """Return how a module of this case is constructed and called; None where the task takes none."""
    interface = arguments.task.module
    if interface is None or not arguments.task.takes_modules:
        return None
    names, results = arguments.names, tuple(spec.name for spec in arguments.task.outputs)
    init = tuple(
        tuple(one.value(names) for one in item) if isinstance(item, tuple) else item.value(names)
        for item in interface.init
    )
    return ModuleCall(init, interface.forward, dict(interface.state), results, interface.zeros)


def _scatter(halves: torch.Tensor, tensor: Tensor, generator: torch.Generator) -> None:
    """Fill 16-bit words of a tensor's memory with NaN of its dtype, or of any float where it has none."""
    halves.random_(*_SIGNALLING_HALVES.get(tensor.dtype, _NAN_HALVES), generator=generator)
