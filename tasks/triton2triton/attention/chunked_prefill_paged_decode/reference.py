"""Attention over a paged cache (Kwon et al., PagedAttention, 2023), one sequence after the other."""

import torch

from arena.semantics.paged import tokens_of


def reference(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float,
) -> torch.Tensor:
    """query, out: (num_seqs, num_heads, head_dim); caches: (num_blocks, block_size, num_kv_heads, head_dim)."""
    _, num_heads, head_dim = query.shape
    num_kv_heads = key_cache.shape[2]
    out = torch.empty_like(query)
    for index, length in enumerate(seq_lens.tolist()):
        keys = tokens_of(key_cache, block_table[index], length)
        values = tokens_of(value_cache, block_table[index], length)
        grouped = query[index].view(num_kv_heads, num_heads // num_kv_heads, head_dim)
        weights = torch.softmax(torch.einsum("hgd,thd->hgt", grouped, keys) * sm_scale, dim=-1)
        out[index] = torch.einsum("hgt,thd->hgd", weights, values).flatten(0, 1)
    return out
