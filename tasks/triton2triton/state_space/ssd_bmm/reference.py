"""Products within chunks of the state-space dual scan (Dao and Gu, Transformers are SSMs, 2024)."""

import torch

from arena.semantics.state_space import chunked


def reference(a: torch.Tensor, b: torch.Tensor, causal: bool, chunk_size: int) -> torch.Tensor:
    """a, b: (batch, seq_len, num_groups, state_dim); out: (batch, num_chunks, num_groups, chunk_size, chunk_size)."""
    out = torch.einsum("bcmgn,bckgn->bcgmk", chunked(a, chunk_size), chunked(b, chunk_size))
    return out.tril() if causal else out
