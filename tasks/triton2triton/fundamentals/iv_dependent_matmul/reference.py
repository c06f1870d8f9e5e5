"""The down projection of a contextually sparse MLP (Liu et al., Deja Vu, 2023), by blocks of neurons."""

import torch


def unread(a: torch.Tensor, b: torch.Tensor, block_ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Blocks that are not listed."""
    listed = torch.zeros(b.shape[:2], dtype=torch.bool, device=b.device)
    listed.scatter_(1, block_ids.long(), True)
    return {"a": ~listed[:, None].expand(a.shape[:3]), "b": ~listed}


def reference(a: torch.Tensor, b: torch.Tensor, block_ids: torch.Tensor) -> torch.Tensor:
    """a: (M, num_blocks, block_size); b: (num_blocks, block_size, N); block_ids: (num_active,); out: (M, N)."""
    ids = block_ids.long()
    return a[:, ids].flatten(1) @ b[ids].flatten(0, 1)
