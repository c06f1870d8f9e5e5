"""expect: crash. The host writes the outputs by their address, without a kernel (cheat 79)."""

import ctypes

# <kernel>


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    ctypes.memset(y.data_ptr(), 0, 4)
