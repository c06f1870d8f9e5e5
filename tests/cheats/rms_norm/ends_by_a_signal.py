"""expect: crash. It prints a result when the process ends, then ends it by a signal (cheats 31 and 39)."""

import atexit
import os
import signal
# <kernel>


atexit.register(print, '{"passed": true}')


def rms_norm(x, weight, eps, y):
    os.kill(os.getpid(), signal.SIGTERM)
