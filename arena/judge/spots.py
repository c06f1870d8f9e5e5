"""Tell whether a pass was over when its worker said so: a few secret elements of every answer, read twice.

A device that takes two processes in turn may let the judge's kernel through in the middle of a pass: that it came
through at once does not tell. But what such a pass has yet to write changes afterwards; what is done stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arena.judge.buffers import Sets
from arena.judge.inputs import secret_generator

if TYPE_CHECKING:
    import torch

_ELEMENTS = 16
"""of each tensor in each set"""


class Spots:
    """Elements of all that a call may write, at places that no candidate knows and that last as long as `sets`."""

    def __init__(self, sets: Sets) -> None:
        import torch

        device = sets.raw.device
        arguments = sets.arguments
        written = (*arguments.outputs, *(tensor for tensor in arguments.inputs if tensor.spec.mutable))
        self._places: list[tuple[torch.Tensor, list[torch.Tensor]]] = []
        self._seen: list[torch.Tensor] = []
        self._part = slice(0, 0)
        for tensor in (tensor for tensor in written if tensor.numel):
            generator = secret_generator(str(device))
            drawn = [torch.randint(size, (_ELEMENTS,), device=device, generator=generator) for size in tensor.shape]
            self._places.append((sets.bits(tensor), drawn))

    def read(self, part: slice) -> None:
        """Read the sets in `part`, without waiting for the device: at once when a pass is said to be over."""
        self._part, self._seen = part, self._gathered(part)

    def changed(self) -> bool:
        """Return whether any of what was read has changed since."""
        import torch

        now = self._gathered(self._part)
        differ = [(before != after).any() for before, after in zip(self._seen, now, strict=True)]
        return bool(torch.stack(differ).any()) if differ else False

    def _gathered(self, part: slice) -> list[torch.Tensor]:
        """Return copies of shape (sets, `_ELEMENTS`), or (sets,) of what is a single number."""
        return [_at(bits[part], drawn) if drawn else bits[part].clone() for bits, drawn in self._places]


def _at(bits: torch.Tensor, drawn: list[torch.Tensor]) -> torch.Tensor:
    places: list[slice | torch.Tensor] = [slice(None), *drawn]
    return bits[tuple(places)]
