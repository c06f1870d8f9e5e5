"""The gated delta rule (Yang et al., Gated Delta Networks, 2024) one step of all sequences after the other."""

import torch


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    beta: torch.Tensor,
    g: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    idx_mapping: torch.Tensor,
    state: torch.Tensor,
    sm_scale: float,
    normalize: bool,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, key: (num_tokens, num_key_heads, head_dim); state: (num_slots, num_value_heads, head_dim, value_dim)."""
    if normalize:
        query = query / (query.square().sum(dim=-1, keepdim=True) + eps).sqrt()
        key = key / (key.square().sum(dim=-1, keepdim=True) + eps).sqrt()
    group = value.shape[1] // key.shape[1]
    query, key = query.repeat_interleave(group, 1), key.repeat_interleave(group, 1)
    starts, lengths = cu_seqlens[:-1].long(), cu_seqlens.diff().long()
    slots = idx_mapping.long()
    out = torch.empty_like(value)
    for step in range(int(lengths.max())):
        live = lengths > step
        tokens, rows = starts[live] + step, slots[live]
        now = state[rows]
        if g is not None:
            now = now * g[tokens].exp()[..., None, None]
        read = torch.einsum("shkv,shk->shv", now, key[tokens])
        write = beta[tokens][..., None] * (value[tokens] - read)
        now = now + key[tokens][..., None] * write[..., None, :]
        out[tokens] = sm_scale * torch.einsum("shkv,shk->shv", now, query[tokens])
        state[rows] = now
    return out, state
