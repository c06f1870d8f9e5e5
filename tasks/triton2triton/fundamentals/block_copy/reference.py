"""A padded window of a matrix."""

import torch


def reference(x: torch.Tensor, top: int, left: int, padding: float, rows: int, columns: int) -> torch.Tensor:
    """x: (M, N); out: (rows, columns)."""
    height, width = x.shape
    out = torch.full((rows, columns), padding, dtype=x.dtype, device=x.device)
    y0, y1 = max(0, top), min(height, top + rows)
    x0, x1 = max(0, left), min(width, left + columns)
    if y0 < y1 and x0 < x1:
        out[y0 - top : y1 - top, x0 - left : x1 - left] = x[y0:y1, x0:x1]
    return out
