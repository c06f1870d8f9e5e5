"""Positions and lengths of the sequences of a batch."""

import torch

from arena.semantics.ragged import owners


def reference(
    num_computed_tokens: torch.Tensor, cu_seqlens: torch.Tensor, idx_mapping: torch.Tensor, positions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """cu_seqlens: (num_reqs + 1,); num_computed_tokens, seq_lens: (num_slots,); positions: (max_tokens,)."""
    computed = num_computed_tokens[idx_mapping.long()]
    seq_lens = torch.zeros_like(num_computed_tokens)
    seq_lens[: computed.numel()] = computed + cu_seqlens.diff()
    request = owners(cu_seqlens)
    within = torch.arange(request.numel(), device=request.device) - cu_seqlens.long()[request]
    positions[: request.numel()] = computed.long()[request] + within
    return seq_lens, positions
