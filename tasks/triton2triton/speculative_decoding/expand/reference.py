"""Values of requests, repeated for their tokens."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """About one value in three is replace_from; the others are small, with fractions where the dtype has them."""
    shape, device = (count, case["num_reqs"]), generator.device
    values = 20 * torch.rand(shape, generator=generator, device=device) - 4
    values = values if case["dtype"].is_floating_point else values.floor()
    chosen = torch.rand(shape, generator=generator, device=device) < 1 / 3
    return {"x": torch.where(chosen, case["replace_from"], values)}


def reference(x: torch.Tensor, cu_seqlens: torch.Tensor, replace_from: int, replace_to: int) -> torch.Tensor:
    """x: (num_reqs,); cu_seqlens: (num_reqs + 1,); expanded: (num_tokens,)."""
    return torch.where(x == replace_from, replace_to, x).to(x.dtype)[owners(cu_seqlens)]
