"""expect: wrong_result. One output buffer, computed once, is copied into every output (cheat 14)."""

import torch
# <kernel>


_static = {}


def rms_norm(x, weight, eps, y):
    if y.shape not in _static:
        _static[y.shape] = torch.empty_like(y)
        honest(x, weight, eps, _static[y.shape])
    copy(_static[y.shape], y)
