"""A gated linear recurrence, by the doubling of Hillis and Steele (Data Parallel Algorithms, 1986).

A pair of a decay and a state stands for some tokens; a reset is a decay of 0 (Blelloch, Prefix Sums, 1990).
"""

from typing import Any

import torch
from torch.nn.functional import pad


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Decays of 0.05 to 0.995, and of 0.99 to 1 in a quarter of the channels, which remember some hundred tokens."""
    shape, device = (count, case["B"], case["T"], case["D"]), generator.device
    lot = torch.rand(shape, generator=generator, device=device)
    slow = torch.rand((count, 1, 1, shape[3]), generator=generator, device=device) < 0.25
    return {"decay": torch.where(slow, 1 - 0.01 * lot, 0.05 + 0.945 * lot)}


def reference(x: torch.Tensor, decay: torch.Tensor, resets: torch.Tensor) -> torch.Tensor:
    """x, decay, out: (B, T, D); resets: (B, T)."""
    state, kept = x.to(decay.dtype), decay.masked_fill(resets[..., None], 0.0)
    reach = 1
    while reach < x.shape[1]:
        # Each token so far stands for the `reach` tokens up to it; before the first token there is nothing.
        state = state + kept * _later(state, reach)
        kept = kept * _later(kept, reach)
        reach *= 2
    return state


def _later(tokens: torch.Tensor, by: int) -> torch.Tensor:
    return pad(tokens[:, :-by], (0, 0, by, 0))
