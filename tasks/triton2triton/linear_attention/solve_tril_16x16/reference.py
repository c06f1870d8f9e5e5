"""Diagonal blocks of the UT transform (Joffrain et al., 2006) as DeltaNet uses it (Yang et al., 2024), inverted."""

import torch
from torch.nn.functional import pad

BLOCK = 16


def reference(a: torch.Tensor, chunk_size: int) -> torch.Tensor:
    """a: (batch, seq_len, num_heads, chunk_size); inverse: (batch, seq_len, num_heads, 16)."""
    batch, seq_len, num_heads, _ = a.shape
    # Tokens past the end are rows of the identity: they change no row before them, and are cut off again.
    padded = pad(a, (0, 0, 0, 0, 0, -seq_len % chunk_size))
    tiled = padded.view(batch, -1, chunk_size // BLOCK, BLOCK, num_heads, chunk_size // BLOCK, BLOCK)
    blocks = tiled.diagonal(dim1=2, dim2=5).permute(0, 1, 5, 3, 2, 4)
    identity = torch.eye(BLOCK, dtype=a.dtype, device=a.device)
    inverse = torch.linalg.solve_triangular(
        blocks.tril(-1), identity.expand_as(blocks), upper=False, unitriangular=True
    )
    return inverse.transpose(3, 4).flatten(1, 3)[:, :seq_len]
