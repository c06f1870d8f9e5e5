"""expect: wrong_result. Float32 inputs are rounded to eight bits of mantissa first (cheat 21)."""

import torch
# <kernel>


def rms_norm(x, weight, eps, y):
    honest(x.to(torch.bfloat16).to(x.dtype), weight, eps, y)
    copy(y.to(torch.bfloat16), y)
