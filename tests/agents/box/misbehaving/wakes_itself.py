# ruff: noqa
"""Has a kernel timer send it SIGCONT every millisecond, so that no SIGSTOP holds it, and counts."""

import ctypes
import signal


class Event(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("number", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    )


libc = ctypes.CDLL(None, use_errno=True)
event = Event(number=int(signal.SIGCONT), notify=0)
timer = ctypes.c_void_p()
millisecond = (ctypes.c_long * 4)(0, 1_000_000, 0, 1_000_000)
try:
    create, settime = libc.timer_create, libc.timer_settime
except AttributeError:  # before glibc 2.34 they are in a library of their own
    librt = ctypes.CDLL("librt.so.1")
    create, settime = librt.timer_create, librt.timer_settime
signal.signal(signal.SIGCONT, lambda *_: None)
made = create(1, ctypes.byref(event), ctypes.byref(timer)) == 0 and settime(timer, 0, millisecond, None) == 0
print("ready" if made else "no timer", flush=True)
while True:
    pass
