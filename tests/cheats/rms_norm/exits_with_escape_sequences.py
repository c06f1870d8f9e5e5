"""expect: crash. The log that explains its end would clear the reader's screen (cheat 76)."""

import os
# <kernel>


def rms_norm(x, weight, eps, y):
    os.write(1, b"\x1b[2J\x1b]0;passed\x07\xc2\x9b31m\xe2\x80\xaedessap\r\n")
    os._exit(3)
