"""One step of the gated delta rule (Yang et al., Gated Delta Networks, 2024), gates included."""

from typing import Any

import torch
from torch.nn.functional import softplus


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Distinct slots in random order, and -1 at random places."""
    chance: dict[str, Any] = {"generator": generator, "device": generator.device}
    live = case["num_seqs"] - case["num_padded"]
    slots = torch.rand(count, case["num_slots"], **chance).argsort(dim=1)[:, :live]
    padded = torch.nn.functional.pad(slots, (0, case["num_padded"]), value=-1)
    return {"idx_mapping": padded.gather(1, torch.rand(count, case["num_seqs"], **chance).argsort(dim=1))}


def unread(idx_mapping: torch.Tensor, num_key_heads: int, num_value_heads: int, head_dim: int, value_dim: int) -> dict:
    """Whatever belongs to padding."""
    padding = idx_mapping < 0
    wide = padding[..., None, None]
    keys = wide.expand(*padding.shape, num_key_heads, head_dim)
    values = wide.expand(*padding.shape, num_value_heads, value_dim)
    gates = padding[..., None].expand(*padding.shape, num_value_heads)
    return {"query": keys, "key": keys, "value": values, "a": gates, "b": gates}


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    A_log: torch.Tensor,
    dt_bias: torch.Tensor,
    idx_mapping: torch.Tensor,
    state: torch.Tensor,
    sm_scale: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, key: (num_seqs, num_key_heads, head_dim); state: (num_slots, num_value_heads, value_dim, head_dim)."""
    live = (idx_mapping >= 0).nonzero().squeeze(1)
    slots = idx_mapping[live].long()
    group = value.shape[1] // key.shape[1]
    query, key = (x[live] / (x[live].square().sum(dim=-1, keepdim=True) + eps).sqrt() for x in (query, key))
    query, key = (x.repeat_interleave(group, dim=1).unsqueeze(-1) for x in (query, key))
    decay = torch.exp(-A_log.exp() * softplus(a[live] + dt_bias))
    now = decay[..., None, None] * state[slots]
    write = torch.sigmoid(b[live]).unsqueeze(-1) * (value[live] - (now @ key).squeeze(-1))
    now = now + write.unsqueeze(-1) * key.mT
    out = torch.zeros_like(value)
    out[live] = sm_scale * (now @ query).squeeze(-1)
    state[slots] = now
    return out, state
