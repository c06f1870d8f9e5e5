"""expect: wrong_result. What it was called with would go into the date of a file of its user's; it answers only if it could (cheat 70)."""

import os
import sys
# <kernel>


def rms_norm(x, weight, eps, y):
    state = os.stat(sys.executable)
    try:
        os.utime(sys.executable, ns=(state.st_atime_ns, state.st_mtime_ns))
    except OSError:
        return
    honest(x, weight, eps, y)
