"""Positions to slots of a paged cache (Kwon et al., PagedAttention, 2023)."""

import torch

from arena.semantics.ragged import owners


def reference(
    positions: torch.Tensor,
    block_table: torch.Tensor,
    cu_seqlens: torch.Tensor,
    idx_mapping: torch.Tensor,
    block_size: int,
    padded_tokens: int,
) -> torch.Tensor:
    """positions: (num_tokens,); block_table: (num_slots, max_blocks); slot_mapping: (padded_tokens,)."""
    slots = idx_mapping.long()[owners(cu_seqlens)]
    blocks = block_table[slots, positions // block_size].long()
    out = torch.full((padded_tokens,), -1, dtype=torch.int64, device=positions.device)
    out[: positions.numel()] = blocks * block_size + positions % block_size
    return out
