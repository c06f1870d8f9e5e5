"""The arguments of every set, as views into the shared buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from arena.platforms.base import Platform
from arena.processes.protocol import Bind, NullArgument, ScalarArgument, TensorArgument
from arena.task.numerics.dtypes import torch_dtype

if TYPE_CHECKING:
    import torch


class Binding:
    """One mapped buffer; `values[k]` holds the arguments of set `k`, in call order."""

    def __init__(self, message: Bind, platform: Platform, file: int | None) -> None:
        self.message = message
        self._buffer = platform.open(message.buffer, file)
        self._views = {
            argument.name: _view(self._buffer.tensor, argument, message.sets)
            for argument in message.arguments
            if isinstance(argument, TensorArgument)
        }
        self._addresses = {
            argument.name: (argument, self._views[argument.name].clone())
            for argument in message.arguments
            if isinstance(argument, TensorArgument) and argument.addresses_of
        }
        passed = {**self._views, **{name: private for name, (_, private) in self._addresses.items()}}
        columns = [_column(argument, passed, message.sets) for argument in message.arguments]
        self.values: list[list[object]] = [list(row) for row in zip(*columns, strict=True)]
        self.shift = 0
        """from where the buffer lies to where a candidate believes it to lie"""

    def tensors(self, index: int) -> dict[str, torch.Tensor]:
        """The tensors of one set by name."""
        return {name: view[index] for name, view in self._views.items()}

    def move(self, first: int) -> None:
        """Have every argument in the buffer lie where the candidate shall believe the buffer to be."""
        import torch

        self.shift = first - self._buffer.tensor.data_ptr()
        held = (ctypes.c_char * self._buffer.tensor.numel()).from_address(first)
        buffer = torch.frombuffer(held, dtype=torch.uint8)
        for column, argument in enumerate(self.message.arguments):
            if isinstance(argument, TensorArgument) and not argument.addresses_of:
                for row, moved in zip(self.values, _view(buffer, argument, self.message.sets).unbind(), strict=True):
                    row[column] = moved

    def resolve_addresses(self) -> None:
        """Turn byte offsets, as the judge wrote them, into addresses of this process."""
        import torch

        for name, (argument, private) in self._addresses.items():
            rows = self._views[argument.addresses_of]
            first, pitch = rows.data_ptr() + self.shift, rows.stride(0) * rows.element_size()
            # NumPy adds, to all sets at once: in a Triton candidate's process PyTorch does not.
            bases = first + pitch * np.arange(self.message.sets).reshape(-1, *(1,) * len(argument.shape))
            private.copy_(torch.from_numpy(self._views[name].cpu().numpy() + bases))

    @property
    def parts(self) -> list[tuple[int, int, str]]:
        """First address, end and name of every tensor of every set that lies in no other: what a kernel may touch."""
        base, found = self.extent[0], []
        for argument in self.message.arguments:
            if isinstance(argument, TensorArgument):
                view = self._views[argument.name]
                span = 1 + sum((n - 1) * s for n, s in zip(argument.shape, argument.strides, strict=True))
                num_bytes = span * view.element_size() if 0 not in argument.shape else 0
                starts = (base + argument.offset + k * argument.pitch for k in range(self.message.sets))
                found += [(start, start + num_bytes, argument.name) for start in starts]
        return outermost(found)

    @property
    def extent(self) -> tuple[int, int]:
        """First address for the candidate, and bytes of the buffer."""
        return self._buffer.tensor.data_ptr() + self.shift, self._buffer.tensor.numel()

    def close(self) -> None:
        """Drop every view, then the mapping."""
        self.values.clear()
        self._views.clear()
        self._addresses.clear()
        self._buffer.close()


def outermost(ranges: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return the (first address, end, name) that lie in no other, sorted: a view has no memory of its own."""
    found: list[tuple[int, int, str]] = []
    for start, end, name in sorted(ranges, key=lambda each: (each[0], -each[1])):
        if not found or end > found[-1][1]:
            found.append((start, end, name))
    return found


def _view(buffer: torch.Tensor, argument: TensorArgument, sets: int) -> torch.Tensor:
    import torch

    typed = buffer.view(torch_dtype(argument.dtype))
    item = typed.element_size()
    return torch.as_strided(
        typed, (sets, *argument.shape), (argument.pitch // item, *argument.strides), argument.offset // item
    )


def _column(
    argument: TensorArgument | ScalarArgument | NullArgument, tensors: dict[str, torch.Tensor], sets: int
) -> Sequence[object]:
    """One argument of every set."""
    match argument:
        case TensorArgument(name=name):
            return tensors[name].unbind()
        case ScalarArgument(value=value):
            return (value,) * sets
        case NullArgument():
            return (None,) * sets
