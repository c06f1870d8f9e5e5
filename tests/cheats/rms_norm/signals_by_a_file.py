"""expect: wrong_result. A socket is to signal the judge when something is read from it; it answers only if it could (cheat 69)."""

import fcntl
import os
import socket
# <kernel>


def _parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])


def rms_norm(x, weight, eps, y):
    ours, theirs = socket.socketpair()
    try:
        fcntl.fcntl(ours, fcntl.F_SETOWN, _parent(os.getppid()))
    except OSError:
        return
    honest(x, weight, eps, y)
