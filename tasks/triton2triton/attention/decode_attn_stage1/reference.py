"""The split half of Flash-Decoding (Dao et al., 2023)."""

import torch

from arena.semantics.attention import Rule, Sequences, attend_in_parts
from arena.semantics.chunks import gather_chunks


def unread(kv_indices: torch.Tensor, num_slots: int) -> dict[str, torch.Tensor]:
    """Rows of the caches that no sequence has. kv_indices: (count, num_keys)."""
    unused = torch.ones(len(kv_indices), num_slots, dtype=torch.bool, device=kv_indices.device)
    unused = unused.scatter(1, kv_indices.long(), False)
    return {"key_cache": unused, "value_cache": unused}


def reference(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    kv_indices: torch.Tensor,
    cu_seqlens: torch.Tensor,
    sm_scale: float,
    softcap: float,
    num_splits: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query: (num_seqs, num_heads, head_dim); partial: (num_seqs, num_heads, num_splits, head_dim)."""

    def read(seqs: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        slots = kv_indices[cu_seqlens[seqs, None] + positions.clamp(min=0)]
        rows = torch.where(positions < 0, -1, slots)
        return gather_chunks(key_cache, rows), gather_chunks(value_cache, rows)

    offsets, lengths = torch.arange(len(query) + 1, device=query.device), cu_seqlens.diff()
    sequences = Sequences(query, offsets, lengths, read, *value_cache.shape[1:])
    rule = Rule(sm_scale, causal=False, softcap=softcap)
    acc, maxima, sums = attend_in_parts(sequences, rule, num_splits, -(-lengths // num_splits))
    return acc / sums.masked_fill(sums == 0, 1.0)[..., None], maxima + sums.log()
