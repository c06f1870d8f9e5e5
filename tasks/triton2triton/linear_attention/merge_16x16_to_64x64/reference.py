"""Block forward substitution (Golub and Van Loan, Matrix Computations) with the diagonal blocks' inverses given."""

import torch
from torch.nn.functional import pad

BLOCKS, SIZE = 4, 16


def unread(a: torch.Tensor, diag_inverse: torch.Tensor) -> dict[str, torch.Tensor]:
    """What lies above the diagonal of a block."""
    token = torch.arange(a.shape[-3], device=a.device)[:, None, None]
    return {
        "a": (torch.arange(BLOCKS * SIZE, device=a.device) >= token % (BLOCKS * SIZE)).expand_as(a),
        "diag_inverse": (torch.arange(SIZE, device=a.device) > token % SIZE).expand_as(diag_inverse),
    }


def reference(a: torch.Tensor, diag_inverse: torch.Tensor) -> torch.Tensor:
    """a, inverse: (batch, seq_len, num_heads, 64); diag_inverse: (batch, seq_len, num_heads, 16)."""
    batch, seq_len, num_heads, _ = a.shape

    def by_block(rows: torch.Tensor) -> torch.Tensor:
        """(batch, runs, block, num_heads, 16, columns)."""
        padded = pad(rows, (0, 0, 0, 0, 0, -seq_len % (BLOCKS * SIZE)))
        return padded.view(batch, -1, BLOCKS, SIZE, num_heads, rows.shape[-1]).transpose(3, 4)

    rows, diagonal = by_block(a), by_block(diag_inverse).tril()
    # Block row i of the inverse is D_i @ (row i of the identity - sum over k < i of A_ik @ block row k).
    solved = [diagonal.new_zeros(*diagonal.shape[:2], num_heads, SIZE, BLOCKS * SIZE) for _ in range(BLOCKS)]
    for i in range(BLOCKS):
        right = torch.zeros_like(solved[i])
        if i:
            right = rows[:, :, i, ..., : i * SIZE] @ torch.cat(solved[:i], dim=-2)
        below = -(diagonal[:, :, i] @ right)
        solved[i] = below + pad(diagonal[:, :, i], (i * SIZE, (BLOCKS - 1 - i) * SIZE))
    return torch.cat(solved, dim=-2).transpose(2, 3).flatten(1, 2)[:, :seq_len]
