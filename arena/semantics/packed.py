"""4-bit codes, eight to an int32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

IN_ORDER = (0, 1, 2, 3, 4, 5, 6, 7)
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Which of eight neighbouring values each 4-bit field holds, lowest bits first, in AWQ checkpoints (Lin et al.)."""


def unpack_int4(packed: torch.Tensor, order: Sequence[int] = IN_ORDER) -> torch.Tensor:
    """Codes in [0, 15] as int32, the last dimension eight times as long. packed: int32."""
    import torch

    fields = (packed.unsqueeze(-1) >> torch.arange(0, 32, 4, device=packed.device, dtype=torch.int32)) & 0xF
    codes = torch.empty_like(fields)
    codes[..., list(order)] = fields
    return codes.flatten(-2)


def awq_weight(qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor) -> torch.Tensor:
    """The weight (K, N) of an AWQ checkpoint, (code - zero) * scale in the scales' dtype.

    qweight: (K, N / 8), qzeros: (groups, N / 8), both int32 in `AWQ_ORDER`; scales: (groups, N). Each K / groups
    neighbouring rows share a row of scales and of zeros.
    """
    codes, zeros = unpack_int4(qweight, AWQ_ORDER), unpack_int4(qzeros, AWQ_ORDER)
    groups, columns = scales.shape
    centred = codes.view(groups, -1, columns) - zeros.unsqueeze(1)
    return (centred * scales.unsqueeze(1)).view(-1, columns)
