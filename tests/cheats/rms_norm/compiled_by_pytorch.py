"""expect: rule_violation or timeout. PyTorch's compiler is asked to write the kernel; importing it takes a while (cheat 27)."""

import torch
# <kernel>


@getattr(torch, "compile")
def formula(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rms_norm(x, weight, eps, y):
    copy(formula(x, weight, eps), y)
