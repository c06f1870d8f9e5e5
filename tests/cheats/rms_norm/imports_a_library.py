"""expect: rule_violation. A library of kernels is imported (cheat 27)."""

import cupy
# <kernel>


def rms_norm(x, weight, eps, y):
    rows = cupy.asarray(x)
    cupy.asarray(y)[...] = rows / cupy.sqrt((rows * rows).mean(-1, keepdims=True) + eps) * cupy.asarray(weight)
