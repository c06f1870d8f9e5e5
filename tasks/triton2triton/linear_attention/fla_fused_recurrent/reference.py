"""The gated delta rule (Yang et al., Gated Delta Networks, 2024) one step of all sequences after the other."""

import torch

from arena.semantics.ragged import owners


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
    lengths, sequences = cu_seqlens.diff().long(), owners(cu_seqlens)
    positions = torch.arange(len(sequences), device=value.device) - cu_seqlens[sequences]
    # Longer sequences come first: those with a token at a step are as many first ones, and their tokens lie together.
    by_length = lengths.argsort(descending=True)
    order = (positions * len(lengths) + by_length.argsort()[sequences]).argsort()
    slots = idx_mapping.long()[by_length]
    states = state[slots].flatten(0, 1)
    live = (torch.bincount(positions) * value.shape[1]).tolist()
    queries, keys, values = (x[order].flatten(0, 1)[..., None].split(live) for x in (query, key, value))
    betas = beta[order].view(-1, 1, 1).split(live)
    decays = [None] * len(live) if g is None else g.exp()[order].view(-1, 1, 1).split(live)
    outs = []
    for q, k, v, share, decay in zip(queries, keys, values, betas, decays, strict=True):
        now = states[: len(q)]
        if decay is not None:
            now *= decay
        write = share * (v - torch.bmm(now.mT, k))
        now.addcmul_(k, write.mT)
        outs.append(torch.bmm(now.mT, q))
    out = torch.empty_like(value)
    out[order] = sm_scale * torch.cat(outs).view_as(value)
    state[slots] = states.view(-1, *state.shape[1:])
    return out, state
