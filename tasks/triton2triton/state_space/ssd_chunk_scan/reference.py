"""Output of the state-space dual scan (Dao and Gu, Transformers are SSMs, 2024), one chunk after the other."""

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
    C: torch.Tensor,
    CB: torch.Tensor,
    prev_states: torch.Tensor,
    D: torch.Tensor | None,
    z: torch.Tensor | None,
    seq_idx: torch.Tensor | None,
    chunk_size: int,
) -> torch.Tensor:
    """x, z, out: (batch, seq_len, num_heads, head_dim); dt, dA_cumsum: (batch, num_heads, num_chunks, chunk_size).

    C: (batch, seq_len, num_groups, state_dim); CB: (batch, num_chunks, num_groups, chunk_size, chunk_size);
    prev_states: (batch, num_chunks, num_heads, head_dim, state_dim); D: (num_heads,); seq_idx: (batch, seq_len).
    """
    seq_len, heads = x.shape[1:3]
    share = heads // C.shape[2]
    out = torch.empty_like(x)
    for chunk, begin in enumerate(range(0, seq_len, chunk_size)):
        tokens = slice(begin, min(begin + chunk_size, seq_len))
        length = tokens.stop - begin
        decay = dA_cumsum[:, :, chunk, :length]
        kept, weights = decay.exp(), (decay[..., :, None] - decay[..., None, :]).exp().tril()
        if seq_idx is not None:
            ids, before = seq_idx[:, tokens], seq_idx[:, max(begin - 1, 0)]
            kept = kept * (ids == before[:, None])[:, None]
            weights = weights * (ids[:, :, None] == ids[:, None, :])[:, None]
        weights = weights * dt[:, :, chunk, None, :length]
        weights = weights * CB[:, chunk, :, :length, :length].repeat_interleave(share, dim=1)
        state = prev_states[:, chunk].unflatten(1, (-1, share))
        held = torch.einsum("btgn,bgspn->btgsp", C[:, tokens], state).flatten(2, 3)
        recent = torch.einsum("bhmk,bkhp->bmhp", weights, x[:, tokens])
        out[:, tokens] = held * kept.transpose(1, 2)[..., None] + recent
    if D is not None:
        out = out + D[:, None] * x
    return out if z is None else out * torch.nn.functional.silu(z)
