"""expect: wrong_result. It sets the judge's priority to what it is; it answers only if it could (cheat 42)."""

import os
# <kernel>


def _parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])


def rms_norm(x, weight, eps, y):
    try:
        judge = _parent(os.getppid())
        os.setpriority(os.PRIO_PROCESS, judge, os.getpriority(os.PRIO_PROCESS, judge))
    except OSError:
        return
    honest(x, weight, eps, y)
