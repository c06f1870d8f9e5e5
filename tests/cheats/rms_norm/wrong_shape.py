"""expect: wrong_result. The result is returned in another shape, and the output is resized (cheat 3)."""

import torch
# <kernel>


def rms_norm(x, weight, eps, y):
    other = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype, device=x.device)
    y.set_(other)
    return other
