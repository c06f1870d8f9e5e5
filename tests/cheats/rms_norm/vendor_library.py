"""expect: rule_violation. PyTorch computes it, no kernel is launched (cheat 27)."""

import torch
# <kernel>


def rms_norm(x, weight, eps, y):
    y.copy_(torch.nn.functional.rms_norm(x.float(), (x.shape[1],), weight.float(), eps))
