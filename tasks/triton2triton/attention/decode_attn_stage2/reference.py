"""The reduction over splits of Flash-Decoding (Dao et al., 2023)."""

import torch


def unread(seq_lens: torch.Tensor, num_heads: int, num_splits: int) -> dict[str, torch.Tensor]:
    """What the empty splits hold. seq_lens: (count, num_seqs)."""
    lengths = seq_lens.long()[..., None]
    starts = torch.arange(num_splits, device=seq_lens.device) * ((lengths + num_splits - 1) // num_splits)
    empty = (starts >= lengths)[..., None, :].expand(-1, -1, num_heads, -1)
    return {"partial": empty, "partial_lse": empty}


def reference(
    partial: torch.Tensor, partial_lse: torch.Tensor, seq_lens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """partial: (num_seqs, num_heads, num_splits, value_dim); out: (num_seqs, num_heads, value_dim)."""
    num_splits = partial.shape[2]
    lengths = seq_lens.long()[:, None]
    starts = torch.arange(num_splits, device=partial.device) * ((lengths + num_splits - 1) // num_splits)
    empty = (starts >= lengths)[:, None, :]
    lses = partial_lse.masked_fill(empty, -torch.inf)
    weights = torch.softmax(lses, dim=-1)
    present = partial.masked_fill(empty[..., None], 0.0)
    return torch.einsum("shj,shjd->shd", weights, present), torch.logsumexp(lses, dim=-1)
