"""expect: rule_violation or timeout, emulated: rule_violation or timeout or launch_error. PyTorch's compiler is asked to write the kernel; importing it takes a while, and after a task of modules it fails (cheat 27)."""

import torch
# <kernel>


@getattr(torch, "compile")
def formula(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rms_norm(x, weight, eps, y):
    copy(formula(x, weight, eps), y)
