"""The 128 × 4 layout of block scales (cuBLAS documentation, "1D Block Scaling Factors Layout")."""

import torch


def reference(scales: torch.Tensor) -> torch.Tensor:
    """scales: (batch, rows, columns); out: (batch, 512 * tiles)."""
    batch, rows, columns = scales.shape
    bytes_ = scales.contiguous().view(torch.uint8)
    padded = torch.nn.functional.pad(bytes_, (0, -columns % 4, 0, -rows % 128))
    tiles = padded.view(batch, padded.shape[1] // 128, 4, 32, padded.shape[2] // 4, 4)
    return tiles.permute(0, 1, 4, 3, 2, 5).reshape(batch, -1).view(scales.dtype)
