"""expect: passed. Scratch memory is allocated once and kept from call to call."""

import torch
# <kernel>


_scratch = {}


def rms_norm(x, weight, eps, y):
    key = (x.shape, x.dtype)
    if key not in _scratch:
        _scratch[key] = torch.empty_like(y)
    honest(x, weight, eps, _scratch[key])
    copy(_scratch[key], y)
