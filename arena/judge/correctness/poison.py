"""Poison: the secret values of outputs until a call writes them, if possible none that a kernel computes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena.judge.correctness.inputs import secret_generator
from arena.task.definition import FLOATING, Tensor
from arena.task.numerics.dtypes import torch_dtype

if TYPE_CHECKING:
    import torch

# Signalling NaN with a random payload, per item size: (fixed bits, bits that may be random).
_NAN = {8: (0x7FF4 << 48, (1 << 48) - 1), 4: (0x7FA0 << 16, (1 << 16) - 1), 2: (0x7F80, 0x3F)}
_HALF_NAN = (0x7C00, 0x1FF)
_TRUE = 1
_FEW_BYTES = 4
"""of an item whose poison may be what a constant output has: a chance of 2^-32 is taken, one of 2^-16 is not"""
_MIN_CONSTANT_BYTES = 8
_FEW_ELEMENTS = 4096
"""of a set, by which a large output without room is known to be written"""


@dataclass(frozen=True)
class Poison:
    """The poison of one output."""

    tensor: Tensor
    bits: int | torch.Tensor
    """one signed integer of the item's size for all elements, or all those of a set"""

    @property
    def is_telling(self) -> bool:
        """Return whether what holds poison was not written: an element, or a set that does throughout."""
        return _has_room(self.tensor) or self.tensor.numel * self.tensor.item_bytes >= _MIN_CONSTANT_BYTES

    def repeated(self, num_bytes: int) -> int:
        """Return the one for all, again and again, as a signed integer of `num_bytes`."""
        assert isinstance(self.bits, int)
        item = self.tensor.item_bytes
        pattern = self.bits.to_bytes(item, "little", signed=True) * (num_bytes // item)
        return int.from_bytes(pattern, "little", signed=True)

    def may_be_left(self, bits: torch.Tensor) -> torch.Tensor:
        """Return whether any of some sets may hold poison: False only if none does. A GPU reads the sets once.

        Args:
            bits: the elements of these sets as integers, shape (sets, *shape).

        Returns:
            A boolean scalar on their device.
        """
        import torch

        if not bits.numel():
            return torch.zeros((), dtype=torch.bool, device=bits.device)
        if self.tensor.dtype == "bool":
            return bits.amax() > _TRUE
        if _has_room(self.tensor):  # the greatest of numbers is NaN if one of them is
            return bits.view(torch_dtype(self.tensor.dtype)).amax(dim=tuple(range(1, bits.ndim))).isnan().any()
        if not bits[0].is_contiguous():
            return torch.ones((), dtype=torch.bool, device=bits.device)
        few = bits.flatten(1)[:, :_FEW_ELEMENTS] if bits.ndim > 1 else bits.unsqueeze(1)
        held = self.bits if isinstance(self.bits, int) else self.bits.flatten()[:_FEW_ELEMENTS]
        return (few == held).all(dim=1).any()

    def is_left(self, bits: torch.Tensor) -> torch.Tensor:
        """Return which of some sets hold poison, shape (sets,). `bits`: as for `may_be_left`."""
        held = (bits == self.bits).reshape(len(bits), -1)
        return held.any(dim=1) if _has_room(self.tensor) else held.all(dim=1)


def fresh_poison(tensor: Tensor, device: torch.device) -> Poison:
    """Return poison that nobody can know: a NaN payload where the dtype has room, and what varies where items are few.

    One small integer for all would be a constant that is right.
    """
    if tensor.item_bytes < _FEW_BYTES and not _has_room(tensor) and tensor.shape:
        return Poison(tensor, _varied(tensor, device))
    return Poison(tensor, _pattern(tensor, secrets.randbits(31)))


def integer_dtype(item_bytes: int) -> torch.dtype:
    """Return the signed integer dtype of this many bytes."""
    return torch_dtype({8: "int64", 4: "int32", 2: "int16", 1: "int8"}[item_bytes])


def _pattern(tensor: Tensor, secret: int) -> int:
    """Return the poison of one output as a signed integer of the item's size."""
    item = tensor.item_bytes
    if tensor.dtype == "bool":
        return 2 + secret % 126  # neither false nor true
    if _has_room(tensor):
        fixed, free = _HALF_NAN if tensor.dtype == "float16" else _NAN[item]
        return fixed | (1 + secret % free)
    bits = 8 * item
    pattern = (secret * 0x9E3779B97F4A7C15) & ((1 << bits) - 1)
    return pattern - (1 << bits) if pattern >> (bits - 1) else pattern


def _has_room(tensor: Tensor) -> bool:
    """Return whether the dtype has values that no kernel computes, to be the poison of each element."""
    return tensor.dtype == "bool" or (tensor.dtype in FLOATING and tensor.item_bytes > 1)


def _varied(tensor: Tensor, device: torch.device) -> torch.Tensor:
    """Return the items of a set, which are secret along its longest axis; shape of the output."""
    import torch

    shape = [1] * len(tensor.shape)
    longest = max(range(len(shape)), key=lambda axis: tensor.shape[axis])
    shape[longest] = tensor.shape[longest]
    half = 1 << 8 * tensor.item_bytes - 1
    dtype = integer_dtype(tensor.item_bytes)
    line = torch.randint(-half, half, shape, dtype=dtype, device=device, generator=secret_generator(str(device)))
    return line.expand(tensor.shape).contiguous()
