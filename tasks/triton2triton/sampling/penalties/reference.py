"""Repetition penalty (Keskar et al., CTRL, 2019), frequency and presence penalties as serving interfaces have them."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """output_counts: 1 to 4 for about three tokens in ten, else 0."""
    shape = (count, case["num_slots"], case["vocab_size"])
    drawn = torch.randint(-9, 5, shape, generator=generator, device=generator.device, dtype=torch.int32)
    return {"output_counts": drawn.clamp_(min=0)}


def reference(
    logits: torch.Tensor,
    repetition_penalty: torch.Tensor,
    frequency_penalty: torch.Tensor,
    presence_penalty: torch.Tensor,
    prompt_bitmask: torch.Tensor,
    output_counts: torch.Tensor,
    idx_mapping: torch.Tensor,
) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); output_counts: (num_slots, vocab_size); the penalties: (num_slots,)."""
    slots = idx_mapping.long()
    vocab = logits.shape[1]
    bits = prompt_bitmask[slots].unsqueeze(-1) >> torch.arange(32, device=logits.device, dtype=torch.int32)
    in_prompt = (bits & 1).bool().flatten(1)[:, :vocab]
    counts = output_counts[slots]
    produced = counts > 0
    factor = torch.where(in_prompt | produced, repetition_penalty[slots][:, None], 1.0)
    scaled = torch.where(logits > 0, logits / factor, logits * factor)
    return scaled - frequency_penalty[slots][:, None] * counts - presence_penalty[slots][:, None] * produced
