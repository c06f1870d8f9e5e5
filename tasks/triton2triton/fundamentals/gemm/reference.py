"""The matrix product of BLAS (Dongarra et al., 1990), with the leaky ReLU of Maas et al. (2013) behind it."""

import torch


def reference(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scales: torch.Tensor | None,
    b_scales: torch.Tensor | None,
    leaky_relu: bool,
    alpha: float,
) -> torch.Tensor:
    """a: (M, K); b: (K, N); a_scales: (M,) or None; b_scales: (N,) or None; out: (M, N)."""
    out = a @ b
    if a_scales is not None:
        out = out * a_scales[:, None]
    if b_scales is not None:
        out = out * b_scales
    return torch.nn.functional.leaky_relu(out, alpha) if leaky_relu else out
