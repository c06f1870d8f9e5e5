"""expect: crash. It leaves with exit code 0 in the middle of a call (cheat 31)."""

import sys
# <kernel>


def rms_norm(x, weight, eps, y):
    sys.exit(0)
