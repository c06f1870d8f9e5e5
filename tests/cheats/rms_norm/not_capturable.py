"""expect: passed. Right, but it waits for the device, so no graph can be made of it: timed as a stream (cheat 43)."""

import torch
# <kernel>


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    if x.is_cuda:
        torch.cuda.synchronize()
