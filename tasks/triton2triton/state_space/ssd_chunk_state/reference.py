"""Chunk states of the state-space dual scan (Dao and Gu, Transformers are SSMs, 2024)."""

from typing import Any

import torch

from arena.semantics.state_space import draw_seq_idx, draw_steps


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """dt and dA_cumsum as heads of a trained model have them; seq_idx with boundaries anywhere."""
    outer, seq_len, chunk_size = (count, case["batch"]), case["seq_len"], case["chunk_size"]
    steps = draw_steps(outer, case["num_heads"], seq_len, chunk_size, generator)
    ids = draw_seq_idx(outer, seq_len, case["num_seqs"], generator)
    return {"dt": steps.dt, "dA_cumsum": steps.dA_cumsum, "seq_idx": ids}


def reference(
    x: torch.Tensor,
    dt: torch.Tensor,
    dA_cumsum: torch.Tensor,
    B: torch.Tensor,
    seq_idx: torch.Tensor | None,
    chunk_size: int,
) -> torch.Tensor:
    """x: (batch, seq_len, num_heads, head_dim); dt, dA_cumsum: (batch, num_heads, num_chunks, chunk_size).

    B: (batch, seq_len, num_groups, state_dim); seq_idx: (batch, seq_len);
    states: (batch, num_chunks, num_heads, head_dim, state_dim).
    """
    share = x.shape[2] // B.shape[2]
    states = []
    for chunk, begin in enumerate(range(0, x.shape[1], chunk_size)):
        tokens = slice(begin, min(begin + chunk_size, x.shape[1]))
        length = tokens.stop - begin
        decay = dA_cumsum[:, :, chunk, :length]
        weights = (decay[..., -1:] - decay).exp() * dt[:, :, chunk, :length]
        if seq_idx is not None:
            ids = seq_idx[:, tokens]
            weights = weights * (ids == ids[:, -1:])[:, None]
        scaled = (x[:, tokens] * weights.transpose(1, 2)[..., None]).unflatten(2, (-1, share))
        states.append(torch.einsum("bkgsp,bkgn->bgspn", scaled, B[:, tokens]).flatten(1, 2))
    return torch.stack(states, dim=1)
