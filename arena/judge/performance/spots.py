"""Tell whether a pass was over when its worker said so: a few secret elements of every answer, read twice.

A device that takes two processes in turn may let the judge's kernel through in the middle of a pass: that it came
through at once does not tell. But what such a pass has yet to write changes afterwards; what is done stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import secret_generator
from arena.judge.correctness.poison import integer_dtype
from arena.task.definition import Tensor

if TYPE_CHECKING:
    import torch

_ELEMENTS = 16
"""of each output in each set; all of a smaller one"""
_MOST_OF_A_SET = 4096
_MOST_OF_A_PASS = 1 << 18
"""of what a call may leave in part as it is: of 0.14 % that change, as in bad_words, a set hides 0.3 % of the time"""


class Spots:
    """Elements of all that a call may write, at places that are drawn anew for every pass and every set."""

    def __init__(self, sets: Sets, *, many: bool = False) -> None:
        """`many`: choose many of every output, where nothing else tells of late work."""
        arguments = sets.arguments
        written = (*arguments.outputs, *(tensor for tensor in arguments.inputs if tensor.spec.mutable))
        self._sets = sets
        self._written = [_Elements(sets, tensor, many=many) for tensor in written if tensor.numel]
        self._places: list[tuple[torch.Tensor, torch.Tensor]] = []
        """items of one size in the buffer, and which of them: a kernel for each size, as soon as a pass is over"""
        self._seen: list[torch.Tensor] = []

    def draw(self, part: slice) -> None:
        """Choose elements of the sets in `part`, before the pass that writes them."""
        import torch

        by_size: dict[int, list[torch.Tensor]] = defaultdict(list)
        for tensor in self._written:
            by_size[tensor.item_bytes].append(tensor.draw(part))
        raw = self._sets.raw
        self._places = [(raw.view(integer_dtype(size)), torch.cat(drawn)) for size, drawn in by_size.items()]

    def read(self) -> None:
        """Read what was chosen, without waiting for the device: at once when the pass is said to be over."""
        self._seen = [items[places] for items, places in self._places]

    def changed(self) -> bool:
        """Return whether any of what was read has changed since."""
        import torch

        pairs = zip(self._places, self._seen, strict=True)
        differ = [(items[places] != before).any() for (items, places), before in pairs]
        return bool(torch.stack(differ).any()) if differ else False


class _Elements:
    """The elements of one tensor in every set, as indices into the buffer's items of its size: int64."""

    def __init__(self, sets: Sets, tensor: Tensor, *, many: bool) -> None:
        import torch

        self.item_bytes = tensor.item_bytes
        self._numel, self._many, self._device = tensor.numel, many or tensor.spec.mutable, sets.raw.device
        bits = sets.bits(tensor)
        self._axes = _merged(tensor.shape, bits.stride()[1:])
        sets_at = torch.arange(sets.count, device=self._device) * bits.stride(0)
        self._firsts = (sets_at + int(bits.storage_offset())).unsqueeze(1)

    def draw(self, part: slice) -> torch.Tensor:
        """Return where some elements of every set in `part` lie, of one axis."""
        import torch

        firsts = self._firsts[part]
        count = self._count(len(firsts))
        if self._numel <= count:
            left = torch.arange(self._numel, device=self._device)
        else:
            generator = secret_generator(str(self._device))
            left = torch.randint(self._numel, (len(firsts), count), device=self._device, generator=generator)
        for size, stride in self._axes[:-1]:
            firsts = firsts + left % size * stride
            left = left // size
        return (firsts + left * self._axes[-1][1]).flatten()

    def _count(self, sets: int) -> int:
        """Return of how many elements a set is told by."""
        return max(_ELEMENTS, min(_MOST_OF_A_SET, _MOST_OF_A_PASS // max(sets, 1))) if self._many else _ELEMENTS


def _merged(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Sizes and strides of as few axes as reach the same elements in the same order, the innermost first."""
    axes = [(1, 1)]
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        inner, step = axes[-1]
        if inner == 1:
            axes[-1] = (size, stride)
        elif size > 1 and stride == inner * step:
            axes[-1] = (inner * size, step)
        elif size > 1:
            axes.append((size, stride))
    return axes
