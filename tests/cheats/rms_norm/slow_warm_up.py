"""expect: passed. The first calls are slow, in the hope of few repetitions: a least number is always made (cheat 9)."""

import time
# <kernel>


_calls = []


def rms_norm(x, weight, eps, y):
    _calls.append(1)
    if len(_calls) < 8:
        time.sleep(0.03)
    honest(x, weight, eps, y)
