"""Tell whether a pass was over when its worker said so: a few secret elements of every answer, read twice.

A device that takes two processes in turn may let the judge's kernel through in the middle of a pass: that it came
through at once does not tell. But what such a pass has yet to write changes afterwards; what is done stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from arena.judge.buffers import Sets
from arena.judge.inputs import secret_generator
from arena.judge.poison import integer_dtype
from arena.model.task import Tensor

if TYPE_CHECKING:
    import torch

_ELEMENTS = 16
"""of each tensor in each set; all of a smaller one"""


class Spots:
    """Elements of all that a call may write, at places that are drawn anew for every pass and every set."""

    def __init__(self, sets: Sets) -> None:
        arguments = sets.arguments
        written = (*arguments.outputs, *(tensor for tensor in arguments.inputs if tensor.spec.mutable))
        self._sets = sets
        self._written = [tensor for tensor in written if tensor.numel]
        self._places: list[tuple[torch.Tensor, torch.Tensor]] = []
        """items of one size in the buffer, and which of them: a kernel for each size, as soon as a pass is over"""
        self._seen: list[torch.Tensor] = []

    def draw(self, part: slice) -> None:
        """Choose elements of the sets in `part`, before the pass that writes them."""
        import torch

        by_size: dict[int, list[torch.Tensor]] = defaultdict(list)
        for tensor in self._written:
            by_size[tensor.item_bytes].append(self._drawn(tensor, part))
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

    def _drawn(self, tensor: Tensor, part: slice) -> torch.Tensor:
        """Return where some elements lie, as indices into the buffer's items of their size: int64, of one axis."""
        import torch

        bits, device = self._sets.bits(tensor), self._sets.raw.device
        chosen = torch.arange(self._sets.count, device=device)[part].unsqueeze(1)
        if tensor.numel <= _ELEMENTS:
            left = torch.arange(tensor.numel, device=device).expand(len(chosen), -1)
        else:
            generator = secret_generator(str(device))
            left = torch.randint(tensor.numel, (len(chosen), _ELEMENTS), device=device, generator=generator)
        places = chosen * bits.stride(0) + int(bits.storage_offset())
        for size, stride in zip(reversed(tensor.shape), reversed(bits.stride()[1:]), strict=True):
            places = places + left % size * stride
            left = left // size
        return places.expand(left.shape).flatten()
