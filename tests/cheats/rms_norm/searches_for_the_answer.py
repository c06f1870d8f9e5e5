"""expect: wrong_result. Every tensor that the garbage collector knows is tried as the answer (cheat 16)."""

import gc

import torch
# <kernel>


def rms_norm(x, weight, eps, y):
    found = [t for t in gc.get_objects() if type(t) is torch.Tensor and t.shape == y.shape and t.dtype == torch.float64]
    copy(found[0] if found else torch.zeros_like(y), y)
