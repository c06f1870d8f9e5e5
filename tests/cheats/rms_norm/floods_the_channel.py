"""expect: crash or timeout. It writes to its worker's channel without end (cheat 73)."""

import os
# <kernel>


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    while True:
        for file in range(3, 64):
            try:
                os.set_blocking(file, False)
                os.write(file, b"\xff" * 65536)
            except OSError:
                continue
