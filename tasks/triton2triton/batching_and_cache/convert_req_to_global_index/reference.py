"""Chosen tokens of a request to places in a paged cache."""

import torch


def reference(
    token_indices: torch.Tensor, block_table: torch.Tensor, req_ids: torch.Tensor, block_size: int
) -> torch.Tensor:
    """token_indices, out: (num_tokens, top_k); block_table: (num_reqs, max_blocks); req_ids: (num_tokens,)."""
    positions = token_indices.long()
    valid = (positions >= 0) & (positions < block_table.shape[1] * block_size)
    positions = positions.where(valid, 0)
    blocks = block_table[req_ids.long().unsqueeze(-1), positions // block_size]
    return (blocks * block_size + positions % block_size).where(valid, -1).to(torch.int32)
