"""expect: launch_error. It leaves 3000 folders in each other, which are not easy to delete, and raises (cheat 74)."""

import os
# <kernel>


def rms_norm(x, weight, eps, y):
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    raise ValueError("clear this")
