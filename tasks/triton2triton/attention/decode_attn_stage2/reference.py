"""The reduction over splits of Flash-Decoding (Dao et al., 2023)."""

import torch


def reference(
    partial: torch.Tensor, partial_lse: torch.Tensor, seq_lens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """partial: (num_seqs, num_heads, num_splits, value_dim); out: (num_seqs, num_heads, value_dim)."""
    num_splits = partial.shape[2]
    lengths = seq_lens.long()[:, None]
    starts = torch.arange(num_splits, device=partial.device) * ((lengths + num_splits - 1) // num_splits)
    lses = partial_lse.masked_fill((starts >= lengths)[:, None, :], -torch.inf)
    weights = torch.softmax(lses, dim=-1)
    return torch.einsum("shj,shjd->shd", weights, partial), torch.logsumexp(lses, dim=-1)
