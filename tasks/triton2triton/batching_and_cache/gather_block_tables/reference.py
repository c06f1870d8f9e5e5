"""Rows of block tables, each as far as it is in use."""

import torch


def reference(
    block_tables: torch.Tensor, num_blocks: torch.Tensor, idx_mapping: torch.Tensor, gathered: torch.Tensor
) -> torch.Tensor:
    """block_tables, gathered: (num_groups, num_slots, max_blocks); num_blocks: (num_groups, num_slots)."""
    slots = idx_mapping.long()
    column = torch.arange(block_tables.shape[2], device=slots.device)
    used = column < num_blocks[:, slots].unsqueeze(-1)
    rows = gathered[:, : slots.numel()]
    rows.copy_(torch.where(used, block_tables[:, slots], rows))
    return gathered
