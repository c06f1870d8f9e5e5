"""One step of a selective state-space model (Gu and Dao, Mamba, 2023; Dao and Gu, Mamba-2, 2024)."""

from typing import Any

import torch

from arena.semantics.paged import draw_slots
from arena.semantics.ragged import at_once


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """idx_mapping: distinct slots in random order, with -1 in (num_seqs + 5) // 8 random places."""
    return {"idx_mapping": draw_slots(case["num_slots"], case["num_seqs"], count, generator)}


def reference(
    x: torch.Tensor,
    dt: torch.Tensor,
    dt_bias: torch.Tensor | None,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor | None,
    z: torch.Tensor | None,
    idx_mapping: torch.Tensor,
    state: torch.Tensor,
    dt_softplus: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, dt, z, out: (num_seqs, num_heads, head_dim); dt_bias, D: (num_heads, head_dim); B, C: (num_seqs, num_groups,
    state_dim); A: (num_heads, head_dim, state_dim); state: (num_slots, num_heads, head_dim, state_dim).
    """
    out = torch.zeros_like(x)
    share = x.shape[1] // B.shape[1]
    steps = dt if dt_bias is None else dt + dt_bias
    if dt_softplus:
        steps = torch.logaddexp(steps, torch.zeros_like(steps))
    used = (idx_mapping >= 0).nonzero().flatten()
    for seqs in used.split(at_once(5 * A.numel())):
        slots, step = idx_mapping[seqs].long(), steps[seqs][..., None]
        inputs, outputs = (factor[seqs].repeat_interleave(share, dim=1) for factor in (B, C))
        new = (step * A).exp() * state[slots] + step * x[seqs][..., None] * inputs[:, :, None]
        state[slots] = new
        value = torch.einsum("shpn,shn->shp", new, outputs)
        out[seqs] = value if D is None else value + D * x[seqs]
    return out if z is None else out * torch.nn.functional.silu(z), state
