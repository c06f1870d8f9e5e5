"""Inverse of a block triangular matrix from those of its diagonal blocks (Golub and Van Loan, Matrix Computations)."""

import torch
from torch.nn.functional import pad


def unread(a: torch.Tensor, diag_inverse: torch.Tensor) -> dict[str, torch.Tensor]:
    """What lies above the diagonal of a block."""
    token = torch.arange(a.shape[-3], device=a.device)[:, None, None]
    return {
        "a": (torch.arange(32, device=a.device) >= token % 32).expand_as(a),
        "diag_inverse": (torch.arange(16, device=a.device) > token % 16).expand_as(diag_inverse),
    }


def reference(a: torch.Tensor, diag_inverse: torch.Tensor) -> torch.Tensor:
    """a, inverse: (batch, seq_len, num_heads, 32); diag_inverse: (batch, seq_len, num_heads, 16)."""
    batch, seq_len, num_heads, _ = a.shape

    def halves(rows: torch.Tensor) -> torch.Tensor:
        """(batch, chunks, half, num_heads, 16, columns)."""
        padded = pad(rows, (0, 0, 0, 0, 0, -seq_len % 32))
        return padded.view(batch, -1, 2, 16, num_heads, rows.shape[-1]).transpose(3, 4)

    first, second = halves(diag_inverse).tril().unbind(2)
    below = -(second @ halves(a)[:, :, 1, :, :, :16] @ first)
    upper = torch.cat([first, torch.zeros_like(first)], dim=-1)
    lower = torch.cat([below, second], dim=-1)
    whole = torch.cat([upper, lower], dim=-2)
    return whole.transpose(2, 3).flatten(1, 2)[:, :seq_len]
