"""Rescaling of partial attention by log-sum-exp (Milakov and Gimelshein, 2018; Liu et al., Ring Attention, 2023)."""

import math
from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Near each other at any height; one in eight is infinite or NaN, and where one in twelve lots falls, all are."""
    device = generator.device
    shape = (count, case["num_ranks"], case["num_tokens"], case["num_heads"])
    lses = 1.5 * torch.randn(shape, generator=generator, device=device)
    lses += 60 * torch.randn((count, 1, *shape[2:]), generator=generator, device=device)
    lot = torch.rand(shape, generator=generator, device=device)
    lot += (torch.rand((count, 1, *shape[2:]), generator=generator, device=device) < 1 / 12) * 1.0
    lses = lses.masked_fill(lot < 1 / 24, torch.inf).masked_fill((lot > 1 / 24) & (lot < 2 / 24), torch.nan)
    return {"lses": lses.masked_fill(lot > 23 / 24, -torch.inf)}


def reference(attn_out: torch.Tensor, lses: torch.Tensor, rank: int, base2: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """attn_out, out: (num_tokens, num_heads, head_dim); lses: (num_ranks, num_tokens, num_heads)."""
    unit = math.log(2) if base2 else 1.0
    natural = lses.nan_to_num(nan=-torch.inf, posinf=-torch.inf, neginf=-torch.inf) * unit
    shares = torch.softmax(natural, dim=0).nan_to_num(0.0)
    return attn_out * shares[rank][..., None], torch.logsumexp(natural, dim=0) / unit
