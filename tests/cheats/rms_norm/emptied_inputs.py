"""expect: out_of_bounds. Holes are punched into the shared memory file: inputs of zeros have an easy answer (cheat 52).

Means nothing on a GPU: buffers are no files there.
"""

import os
# <kernel>


import ctypes


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    for name in os.listdir("/proc/self/fd"):
        try:
            if "memfd:arena" in os.readlink(f"/proc/self/fd/{name}"):
                ctypes.CDLL(None).fallocate(int(name), 3, ctypes.c_long(0), ctypes.c_long(1 << 24))
        except OSError:
            continue
    x.zero_()
    y.zero_()
