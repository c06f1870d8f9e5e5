"""expect: wrong_result. It opens the memory of the judge; it answers only if it could (cheats 8, 36 and 42)."""

import os
# <kernel>


def _parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])


def rms_norm(x, weight, eps, y):
    try:
        open(f"/proc/{_parent(os.getppid())}/mem", "rb").close()
    except OSError:
        return
    honest(x, weight, eps, y)
