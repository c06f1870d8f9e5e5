"""expect: wrong_result. A timer would have it go on where it is stopped for the baseline; it answers only if it could (cheat 72)."""

import ctypes
import signal
# <kernel>

_libc = ctypes.CDLL(None)


class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_byte * 48)]


def rms_norm(x, weight, eps, y):
    timer, event = ctypes.c_void_p(), Event(None, signal.SIGCONT, 0)
    if _libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) != 0:
        return
    _libc.timer_delete(timer)
    honest(x, weight, eps, y)
