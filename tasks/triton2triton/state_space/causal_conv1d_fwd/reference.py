"""Causal depthwise convolution of ragged sequences (as in Gu and Dao, Mamba, 2023), one sequence after the other."""

from typing import Any

import torch

from arena.semantics.ragged import spans


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """cu_seqlens: very different lengths, so that some sequences have fewer tokens than the convolution has taps."""
    shares = torch.rand(count, case["num_seqs"], generator=generator, device=generator.device, dtype=torch.float64) ** 3
    ends = shares.cumsum(-1)
    ends = (ends / ends[:, -1:] * case["num_tokens"]).round()
    return {"cu_seqlens": torch.cat([torch.zeros_like(ends[:, :1]), ends], dim=-1)}


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    idx_mapping: torch.Tensor,
    has_initial_state: torch.Tensor,
    conv_state: torch.Tensor,
    silu: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, y: (num_tokens, hidden); weight: (hidden, width); conv_state: (num_slots, width - 1, hidden)."""
    width = weight.shape[1]
    y = torch.empty_like(x)
    starts = conv_state[idx_mapping.long()] * has_initial_state[:, None, None]
    slots = idx_mapping.tolist()
    for start, slot, (begin, end) in zip(starts, slots, spans(cu_seqlens), strict=True):
        padded = torch.cat([start, x[begin:end]])
        y[begin:end] = sum(weight[:, tap] * padded[tap : tap + end - begin] for tap in range(width))
        conv_state[slot] = padded[end - begin :]
    if bias is not None:
        y = y + bias
    return torch.nn.functional.silu(y) if silu else y, conv_state
