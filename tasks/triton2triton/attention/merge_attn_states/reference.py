"""Merging of partial attention by log-sum-exp (Milakov and Gimelshein, 2018; Ye et al., Cascade Inference, 2024)."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Both log-sum-exp, near each other at any height; one in eight is infinite, of either sign."""
    device = generator.device
    shape = (2, count, case["num_heads"], case["num_tokens"])
    lse = 1.5 * torch.randn(shape, generator=generator, device=device)
    lse += 60 * torch.randn(shape[1:], generator=generator, device=device)
    lot = torch.rand(shape, generator=generator, device=device)
    lse = lse.masked_fill(lot < 1 / 16, torch.inf).masked_fill(lot > 15 / 16, -torch.inf)
    return {"prefix_lse": lse[0], "suffix_lse": lse[1]}


def unread(prefix_lse: torch.Tensor, suffix_lse: torch.Tensor) -> dict[str, torch.Tensor]:
    """Outputs of a side without keys. prefix_lse, suffix_lse: (count, num_heads, num_tokens)."""
    return {"prefix_out": prefix_lse.isinf().transpose(1, 2), "suffix_out": suffix_lse.isinf().transpose(1, 2)}


def reference(
    prefix_out: torch.Tensor, suffix_out: torch.Tensor, prefix_lse: torch.Tensor, suffix_lse: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """out: (num_tokens, num_heads, head_dim); out_lse: (num_heads, num_tokens)."""
    lse = torch.stack([prefix_lse, suffix_lse])
    lse = lse.masked_fill(lse == torch.inf, -torch.inf)
    out_lse = torch.logsumexp(lse, dim=0)
    weights = torch.softmax(lse, dim=0).nan_to_num(0.0).transpose(1, 2)[..., None]
    absent = (lse == -torch.inf).transpose(1, 2)[..., None]
    sides = torch.stack([prefix_out, suffix_out]).masked_fill(absent, 0.0)
    return (weights * sides).sum(dim=0), out_lse
