"""The split half of Flash-Decoding (Dao et al., 2023), one sequence after the other."""

import torch

from arena.semantics.attention import Rule, attend_in_parts, scores_of
from arena.semantics.ragged import spans


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
    rule = Rule(sm_scale, causal=False, softcap=softcap)
    partials, lses = [], []
    for index, (begin, end) in enumerate(spans(cu_seqlens)):
        rows = kv_indices[begin:end].long()
        last = torch.tensor([end - begin - 1], device=query.device)
        scores = scores_of(query[index : index + 1], key_cache[rows], last, rule)
        part_length = -(-(end - begin) // num_splits)
        acc, maxima, sums = attend_in_parts(scores, value_cache[rows], num_splits, part_length)
        partials.append(acc / sums.masked_fill(sums == 0, 1.0)[..., None])
        lses.append(maxima + sums.log())
    return torch.cat(partials), torch.cat(lses)
