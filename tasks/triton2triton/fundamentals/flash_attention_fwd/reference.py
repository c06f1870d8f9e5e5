"""Scaled dot-product attention (Vaswani et al., 2017) with the outputs of FlashAttention (Dao et al., 2022)."""

import torch


def reference(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, sm_scale: float, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, out: (batch, num_heads, seq_len, head_dim); key, value: the same with num_kv_heads; lse: out's rows."""
    batch, num_heads, seq_len, _ = query.shape
    group = num_heads // key.shape[1]
    outs, lses = [], []
    later = torch.ones(seq_len, seq_len, dtype=torch.bool, device=query.device).triu(1)
    # A head at a time: the scores of all of them would not fit.
    for b in range(batch):
        for h in range(num_heads):
            scores = query[b, h] @ key[b, h // group].T * sm_scale
            if causal:
                scores = scores.masked_fill(later, -torch.inf)
            lses.append(scores.logsumexp(dim=-1))
            outs.append((scores - lses[-1][:, None]).exp() @ value[b, h // group])
    shape = (batch, num_heads, seq_len)
    return torch.stack(outs).view(query.shape), torch.stack(lses).view(shape)
