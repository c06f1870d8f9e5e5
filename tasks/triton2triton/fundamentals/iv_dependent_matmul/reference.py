"""The down projection of a contextually sparse MLP (Liu et al., Deja Vu, 2023), by blocks of neurons."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor, block_ids: torch.Tensor) -> torch.Tensor:
    """a: (M, num_blocks, block_size); b: (num_blocks, block_size, N); block_ids: (num_active,); out: (M, N)."""
    ids = block_ids.long()
    return a[:, ids].flatten(1) @ b[ids].flatten(0, 1)
