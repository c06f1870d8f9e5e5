"""Gumbel-max sampling (Maddison, Tarlow and Minka, A* Sampling, 2014) with Philox noise."""

from collections.abc import Iterator
from typing import Any

import torch

from arena.semantics.philox import random_words
from arena.semantics.uneven import make_uneven

LEAST = 2.0**-32
SCALE = 4.6566127342e-10
CHUNK_ELEMENTS = 1 << 24


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Logits of which about one in eight is minus infinity; temperatures of which about one in four is 0."""
    device, vocab = generator.device, case["vocab_size"]
    shape = (count, case["num_reqs"], vocab)
    # From almost flat, where the noise alone decides, to steep.
    spread = 4 * torch.rand((*shape[:2], 1), generator=generator, device=device)
    logits = torch.randn(shape, generator=generator, device=device).mul_(spread)
    make_uneven(logits, generator)
    masked = torch.rand(shape, generator=generator, device=device) < 0.125
    spared = torch.randint(0, vocab, (*shape[:2], 1), generator=generator, device=device)
    masked.scatter_(2, spared, False)
    temperature = torch.rand(count, case["num_slots"], generator=generator, device=device)
    temperature = torch.where(temperature < 0.25, 0.0, 0.3 + 1.2 * temperature)
    return {"logits": logits.masked_fill_(masked, -torch.inf), "temperature": temperature}


def reference(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    idx_mapping: torch.Tensor,
    positions: torch.Tensor,
    apply_temperature: bool,
) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); temperature, seeds: (num_slots,); the others, and sampled: (num_reqs,)."""
    parts = _scores(logits, temperature, seeds, idx_mapping, positions, apply_temperature)
    return torch.cat([scores.argmax(dim=-1) for scores in parts])


def regret(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    idx_mapping: torch.Tensor,
    positions: torch.Tensor,
    apply_temperature: bool,
    sampled: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """How much the chosen token's score is below the best; infinite for an index out of range."""
    valid = (sampled >= 0) & (sampled < logits.shape[1])
    tokens = torch.where(valid, sampled, 0)
    lost = []
    for scores in _scores(logits, temperature, seeds, idx_mapping, positions, apply_temperature):
        chosen, tokens = tokens[: len(scores)], tokens[len(scores) :]
        lost.append(scores.amax(dim=-1) - scores.gather(1, chosen[:, None])[:, 0])
    return {"sampled": torch.where(valid, torch.cat(lost), torch.inf)}


def _scores(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    idx_mapping: torch.Tensor,
    positions: torch.Tensor,
    apply_temperature: bool,
) -> Iterator[torch.Tensor]:
    """Perturbed logits in float64, a few requests at a time."""
    num_reqs, vocab = logits.shape
    slots = idx_mapping.long()
    divisors, keys = temperature[slots][:, None], random_words(seeds[slots], positions)[0][:, None]
    tokens = torch.arange(vocab, device=logits.device)
    rows = max(1, CHUNK_ELEMENTS // vocab)
    for start in range(0, num_reqs, rows):
        part = slice(start, start + rows)
        greedy = divisors[part] == 0
        noise = -torch.log(-torch.log(_uniform(random_words(keys[part], tokens)[0]).double()))
        scaled = logits[part] / torch.where(greedy, 1.0, divisors[part]) if apply_temperature else logits[part]
        yield torch.where(greedy, logits[part], scaled + noise)


def _uniform(words: torch.Tensor) -> torch.Tensor:
    """The float32 numbers of `tl.rand`, rounding included, but at least 2**-32."""
    signed = torch.where(words >= 1 << 31, words - (1 << 32), words)
    magnitudes = torch.where(signed < 0, -signed - 1, signed).float()
    return (magnitudes * SCALE).clamp(min=LEAST)
