"""Causal depthwise convolution of ragged sequences (as in Gu and Dao, Mamba, 2023)."""

from typing import Any

import torch

from arena.semantics.ragged import at_once, owners


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
    slots, starts = idx_mapping.long(), torch.arange(width - 1, device=x.device)
    # Each sequence's first `width - 1` rows of `padded` are its state, the next its tokens.
    firsts = cu_seqlens.long() + torch.arange(len(cu_seqlens), device=x.device) * (width - 1)
    padded = x.new_empty(len(x) + len(slots) * (width - 1), x.shape[1])
    padded[firsts[:-1, None] + starts] = conv_state[slots] * has_initial_state[:, None, None]
    windows = torch.arange(len(x), device=x.device) + owners(cu_seqlens) * (width - 1)
    padded[windows + width - 1] = x
    y = torch.empty_like(x)
    for rows, part in zip(windows.split(at_once(4 * x.shape[1])), y.split(at_once(4 * x.shape[1])), strict=True):
        part.copy_(sum(weight[:, tap] * padded[rows + tap] for tap in range(width)))
    conv_state[slots] = padded[firsts[1:, None] - (width - 1) + starts]
    if bias is not None:
        y = y + bias
    return torch.nn.functional.silu(y) if silu else y, conv_state
