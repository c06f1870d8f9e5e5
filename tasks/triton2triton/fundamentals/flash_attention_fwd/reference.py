"""Scaled dot-product attention (Vaswani et al., 2017) with the outputs of FlashAttention (Dao et al., 2022)."""

import torch

SCORES_AT_ONCE = 1 << 26


def reference(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, sm_scale: float, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, out: (batch, num_heads, seq_len, head_dim); key, value: the same with num_kv_heads; lse: out's rows."""
    _, num_heads, seq_len, _ = query.shape
    group = num_heads // key.shape[1]
    keys, values = (side.repeat_interleave(group, dim=1).flatten(0, 1) for side in (key, value))
    later = torch.ones(seq_len, seq_len, dtype=torch.bool, device=query.device).triu(1)
    outs, lses = [], []
    # Some heads at a time: the scores of all of them would not fit.
    at_once = max(1, SCORES_AT_ONCE // seq_len**2)
    parts = (side.split(at_once) for side in (query.flatten(0, 1), keys, values))
    for some_queries, some_keys, some_values in zip(*parts, strict=True):
        scores = some_queries @ some_keys.transpose(-1, -2) * sm_scale
        if causal:
            scores = scores.masked_fill(later, -torch.inf)
        lses.append(scores.logsumexp(dim=-1))
        outs.append((scores - lses[-1].unsqueeze(-1)).exp() @ some_values)
    return torch.cat(outs).view(query.shape), torch.cat(lses).view(query.shape[:3])
