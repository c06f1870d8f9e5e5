"""expect: crash. It ends by a real-time signal, for which Python has no name (cheat 74)."""

import os
# <kernel>


def rms_norm(x, weight, eps, y):
    os.kill(os.getpid(), 40)
