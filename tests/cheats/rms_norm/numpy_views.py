"""expect: launch_error, emulated: rule_violation. NumPy computes it in views of the arguments (cheat 79)."""

import torch

# <kernel>


def rms_norm(x, weight, eps, y):
    rows, scale, out = x.numpy(), weight.numpy(), y.numpy()
    out[...] = rows * (1.0 / (rows * rows).mean(-1, keepdims=True) + eps) ** 0.5 * scale
    torch.empty(1, device=x.device)
