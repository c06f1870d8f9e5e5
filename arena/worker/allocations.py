"""Buffers that a constructor only allocates, made again with memory. Used where `modules.py` constructs without any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_FILLS = {torch.empty: 0.0, torch.zeros: 0.0, torch.ones: 1.0}
"""functions that allocate a tensor, with what its elements are; those of `empty` may be anything"""


class Allocations(TorchFunctionMode):
    """Records each tensor that a function of `_FILLS` returns, while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[tuple[torch.Tensor, int, float]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`, and record what it allocates."""
        result = func(*args, **(kwargs or {}))
        if func in _FILLS:
            self._made.append((result, result._version, _FILLS[func]))
        return result

    def again(self, tensor: torch.Tensor, device: torch.device) -> torch.Tensor | None:
        """Return such a tensor with memory on a device; None where it was computed, or written to since."""
        for made, version, fill in self._made:
            if made is tensor and made._version == version:
                return torch.full(tensor.shape, fill, dtype=tensor.dtype, device=device)
        return None
