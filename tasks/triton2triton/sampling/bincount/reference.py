"""Token statistics of prompts and outputs by scatter."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Tokens of a skewed distribution; prompts of any share of the sequence, none and all included."""
    device, vocab, slots = generator.device, case["vocab_size"], case["num_slots"]

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand((count, slots, *shape), generator=generator, device=device, dtype=torch.float64)

    tokens = (vocab * uniform(case["max_len"]) ** 3).int().clamp(max=vocab - 1)
    least, most = case["min_seq_len"], case["max_len"]
    seq_lens = (least + (most - least + 1) * uniform()).int().clamp(max=most)
    share = (1.2 * uniform() - 0.1).clamp(0, 1)
    return {"token_ids": tokens, "seq_lens": seq_lens, "prompt_lens": (share * seq_lens).round()}


def reference(
    token_ids: torch.Tensor,
    prompt_lens: torch.Tensor,
    seq_lens: torch.Tensor,
    idx_mapping: torch.Tensor,
    prompt_bitmask: torch.Tensor,
    output_counts: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """prompt_bitmask: (num_slots, ⌈vocab_size / 32⌉); output_counts: (num_slots, vocab_size)."""
    slots = idx_mapping.long()
    tokens = token_ids[slots].long()
    places = torch.arange(tokens.shape[1], device=tokens.device)
    prompt = places < prompt_lens[slots][:, None]
    produced = ~prompt & (places < seq_lens[slots][:, None])
    counts = torch.zeros_like(output_counts[slots]).scatter_add_(1, tokens, produced.int())
    words = prompt_bitmask.shape[1]
    occurs = torch.zeros(len(slots), 32 * words, dtype=torch.int32, device=tokens.device)
    occurs.scatter_add_(1, tokens, prompt.int())
    values = 1 << torch.arange(32, device=tokens.device)
    packed = ((occurs > 0).unflatten(1, (words, 32)) * values).sum(dim=-1)
    prompt_bitmask[slots] = torch.where(packed >= 1 << 31, packed - (1 << 32), packed).int()
    output_counts[slots] = counts
    return prompt_bitmask, output_counts
