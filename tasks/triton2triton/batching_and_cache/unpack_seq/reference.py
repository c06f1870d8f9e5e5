"""Padded to flat sequences."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """cu_seqlens: num_tokens of all num_seqs * max_len places, chosen at random, counted per sequence."""
    places = case["num_seqs"] * case["max_len"]
    order = torch.rand(count, places, generator=generator, device=generator.device).argsort(dim=-1)
    chosen = torch.zeros(count, places, dtype=torch.int64, device=generator.device)
    chosen.scatter_(1, order[:, : case["num_tokens"]], 1)
    lengths = chosen.view(count, case["num_seqs"], case["max_len"]).sum(dim=-1)
    # Evenly filled sequences would be no ragged batch: neighbours exchange up to all that fits.
    moved = torch.minimum(lengths[:, ::2][:, : case["num_seqs"] // 2], case["max_len"] - lengths[:, 1::2])
    moved = (moved * torch.rand(moved.shape, generator=generator, device=generator.device)).long()
    lengths[:, ::2][:, : case["num_seqs"] // 2] -= moved
    lengths[:, 1::2] += moved
    return {"cu_seqlens": torch.nn.functional.pad(lengths.cumsum(dim=-1), (1, 0)).int()}


def reference(padded: torch.Tensor, cu_seqlens: torch.Tensor) -> torch.Tensor:
    """padded: (num_seqs, max_len, hidden); cu_seqlens: (num_seqs + 1,); out: (num_tokens, hidden)."""
    used = torch.arange(padded.shape[1], device=padded.device) < cu_seqlens.diff()[:, None]
    return padded[used]
