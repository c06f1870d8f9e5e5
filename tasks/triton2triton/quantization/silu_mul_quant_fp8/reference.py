"""SwiGLU (Shazeer, GLU Variants Improve Transformer, 2020) and fp8 quantization by a given scale."""

import torch

from arena.semantics.quantize import fp8_codes


def reference(x: torch.Tensor, scales: torch.Tensor, fp8: torch.dtype) -> torch.Tensor:
    """x: (M, 2 * N), gates before ups; scales: (1,); q: (M, N)."""
    gate, up = x.chunk(2, dim=-1)
    return fp8_codes(torch.nn.functional.silu(gate) * up / scales, fp8)
