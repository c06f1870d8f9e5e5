"""expect: launch_error. It writes a file larger than it may (cheat 75)."""

import os
# <kernel>


def rms_norm(x, weight, eps, y):
    with open("filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, (1 << 30) + 1)
    honest(x, weight, eps, y)
