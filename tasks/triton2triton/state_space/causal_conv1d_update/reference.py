"""One step of a causal depthwise convolution (as in Gu and Dao, Mamba, 2023) on cached inputs."""

from typing import Any

import torch

from arena.semantics.paged import draw_slots


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """idx_mapping: distinct slots in random order, with -1 in (num_seqs + 5) // 8 random places."""
    return {"idx_mapping": draw_slots(case["num_slots"], case["num_seqs"], count, generator)}


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    idx_mapping: torch.Tensor,
    conv_state: torch.Tensor,
    silu: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, y: (num_seqs, hidden); weight: (hidden, width); conv_state: (num_slots, state_len, hidden)."""
    used = idx_mapping >= 0
    slots = idx_mapping[used].long()
    inputs = torch.cat([conv_state[slots], x[used].unsqueeze(1)], dim=1)
    result = torch.einsum("sjc,cj->sc", inputs[:, -weight.shape[1] :], weight)
    if bias is not None:
        result = result + bias
    if silu:
        result = torch.nn.functional.silu(result)
    conv_state[slots] = inputs[:, 1:]
    y = torch.zeros_like(x)
    y[used] = result
    return y, conv_state
