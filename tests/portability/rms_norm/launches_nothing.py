# not: gfx90a gfx942 gfx950 gfx1201 sm_90
# PyTorch does the work: there is no kernel to build.
import torch

# <kernel>


def rms_norm(x, weight, eps, y):
    scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)
    y.copy_(x.float() * scale * weight.float())
