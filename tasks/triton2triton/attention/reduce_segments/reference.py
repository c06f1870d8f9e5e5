"""The reduction over segments of split attention (Dao et al., Flash-Decoding, 2023), before normalization."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Maxima near each other at any height and sums of one to forty weights, in the segments that a token uses."""
    device = generator.device
    segments, least = case["num_segments"], case["min_used"]
    tokens = (count, case["num_tokens"], 1, 1)
    shape = (count, case["num_tokens"], case["num_heads"], segments)
    used = torch.randint(least, segments + 1, tokens, generator=generator, device=device)
    first = (torch.rand(tokens, generator=generator, device=device) * (segments + 1 - used)).long()
    index = torch.arange(segments, device=device)
    empty = (index < first) | (index >= first + used)
    maxima = 1.5 * torch.randn(shape, generator=generator, device=device)
    maxima += 60 * torch.randn((*shape[:3], 1), generator=generator, device=device)
    sums = 1 + 39 * torch.rand(shape, generator=generator, device=device)
    return {
        "segment_max": maxima.masked_fill(empty, -torch.inf),
        "segment_sum": sums.masked_fill(empty, 0.0),
    }


def unread(segment_sum: torch.Tensor) -> dict[str, torch.Tensor]:
    """What segments without visible keys hold. segment_sum: (count, num_tokens, num_heads, num_segments)."""
    return {"segment_acc": segment_sum == 0}


def reference(segment_acc: torch.Tensor, segment_max: torch.Tensor, segment_sum: torch.Tensor) -> torch.Tensor:
    """segment_acc: (num_tokens, num_heads, num_segments, head_dim); out: (num_tokens, num_heads, head_dim)."""
    # Relative to their own softmax: a factor common to all segments of a head cancels.
    weights = torch.softmax(segment_max, dim=-1).nan_to_num(0.0)
    totals = (weights * segment_sum).sum(dim=-1, keepdim=True)
    counted = segment_acc.masked_fill((segment_sum == 0)[..., None], 0.0)
    mixed = torch.einsum("thj,thjd->thd", weights, counted)
    return mixed / totals.masked_fill(totals == 0, 1.0)
