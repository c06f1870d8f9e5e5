"""expect: wrong_result. A process beside it, no child of its own, would continue it while it is stopped; it answers only if it could start one (cheat 72)."""

import ctypes
import os
import platform
# <kernel>

_libc = ctypes.CDLL(None)
_CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]


def rms_norm(x, weight, eps, y):
    sibling = _libc.syscall(_CLONE, 0x8000 | 17, 0, 0, 0, 0)
    if sibling == 0:
        os._exit(0)
    if sibling > 0:
        honest(x, weight, eps, y)
