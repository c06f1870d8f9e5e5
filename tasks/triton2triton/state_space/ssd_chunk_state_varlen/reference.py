"""Last states of ragged sequences in the state-space dual scan (Dao and Gu, Transformers are SSMs, 2024)."""

from typing import Any

import torch

from arena.semantics.ragged import spans
from arena.semantics.state_space import draw_steps


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """dt and dA_cumsum as heads of a trained model have them."""
    steps = draw_steps((count,), case["num_heads"], case["num_tokens"], case["chunk_size"], generator)
    return {"dt": steps.dt, "dA_cumsum": steps.dA_cumsum}


def reference(
    x: torch.Tensor,
    dt: torch.Tensor,
    dA_cumsum: torch.Tensor,
    B: torch.Tensor,
    prev_states: torch.Tensor,
    initial_states: torch.Tensor,
    cu_seqlens: torch.Tensor,
    chunk_size: int,
) -> torch.Tensor:
    """x: (num_tokens, num_heads, head_dim); dt, dA_cumsum: (num_heads, num_chunks, chunk_size).

    B: (num_tokens, num_groups, state_dim); prev_states: (num_chunks, num_heads, head_dim, state_dim);
    initial_states, states: (num_seqs, num_heads, head_dim, state_dim).
    """
    states = initial_states.clone()
    share = x.shape[1] // B.shape[1]
    for index, (begin, end) in enumerate(spans(cu_seqlens)):
        if begin == end:
            continue
        chunk = (end - 1) // chunk_size
        base = chunk * chunk_size
        tokens = slice(max(begin, base), end)
        within = slice(tokens.start - base, end - base)
        decay = dA_cumsum[:, chunk]
        last = decay[:, within.stop - 1]
        weights = (last[:, None] - decay[:, within]).exp() * dt[:, chunk, within]
        scaled = (x[tokens] * weights.t()[..., None]).unflatten(1, (-1, share))
        added = torch.einsum("tgsp,tgn->gspn", scaled, B[tokens]).flatten(0, 1)
        held = prev_states[chunk] if begin < base else initial_states[index]
        since = decay[:, within.start - 1] if begin > base else torch.zeros_like(last)
        states[index] = (last - since).exp()[:, None, None] * held + added
    return states
