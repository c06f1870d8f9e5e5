"""expect: wrong_result. It runs before others that want the processor; it answers only if it could (cheat 51)."""

import os
# <kernel>


def rms_norm(x, weight, eps, y):
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    except OSError:
        return
    honest(x, weight, eps, y)
