"""Recurrence over chunks of the state-space dual scan (Dao and Gu, Transformers are SSMs, 2024)."""

from typing import Any

import torch

from arena.semantics.state_space import draw_seq_idx, draw_steps


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """dA_cumsum as heads of a trained model have it; seq_idx with boundaries anywhere."""
    outer, seq_len, chunk_size = (count, case["batch"]), case["seq_len"], case["chunk_size"]
    steps = draw_steps(outer, case["num_heads"], seq_len, chunk_size, generator)
    return {"dA_cumsum": steps.dA_cumsum, "seq_idx": draw_seq_idx(outer, seq_len, case["num_seqs"], generator)}


def reference(
    states: torch.Tensor,
    dA_cumsum: torch.Tensor,
    initial_states: torch.Tensor | None,
    seq_idx: torch.Tensor | None,
    seq_len: int,
    chunk_size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """states, prev_states: (batch, num_chunks, num_heads, head_dim, state_dim); seq_idx: (batch, seq_len).

    dA_cumsum: (batch, num_heads, num_chunks, chunk_size); initial_states, final_states: (batch, num_heads, head_dim,
    state_dim).
    """
    carried = torch.zeros_like(states[:, 0]) if initial_states is None else initial_states
    prev_states = torch.empty_like(states)
    for chunk in range(states.shape[1]):
        prev_states[:, chunk] = carried
        kept = dA_cumsum[:, :, chunk, -1].exp()
        if seq_idx is not None:
            last = min((chunk + 1) * chunk_size, seq_len) - 1
            before = max(chunk * chunk_size - 1, 0)
            kept = kept * (seq_idx[:, last] == seq_idx[:, before])[:, None]
        carried = kept[..., None, None] * carried + states[:, chunk]
    return prev_states, carried
