"""expect: rule_violation. A kernel is launched on scratch memory, PyTorch does the work (cheat 29)."""

import torch
# <kernel>


@triton.jit
def leaf_kernel(p):
    tl.store(p, 1.0)


def rms_norm(x, weight, eps, y):
    leaf_kernel[(1,)](torch.empty(1, device=x.device))
    y.copy_(torch.nn.functional.rms_norm(x.float(), (x.shape[1],), weight.float(), eps))
