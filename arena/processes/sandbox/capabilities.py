"""Giving up root's capabilities, for this process and for what it starts."""

from __future__ import annotations

import ctypes
import os

_DAC_OVERRIDE, _DAC_READ_SEARCH, _IPC_LOCK = 1, 2, 14
_LAST_KNOWN = 40
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 24, 47, 4
_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


class _Half(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop() -> bool:
    """Keep none, but where the user is root those that files and locked memory may need; whether it worked.

    Root's libraries may belong to another user, and a device's driver may lock memory. What is kept opens no file that
    Landlock or a mount hides.
    """
    kept = (_DAC_OVERRIDE, _DAC_READ_SEARCH, _IPC_LOCK) if os.geteuid() == 0 else ()
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(_LAST_KNOWN + 1):
        if number not in kept:
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = _Header(_VERSION_3, 0)
    held = (_Half * 2)()
    if libc.capget(ctypes.byref(header), held) != 0:
        return False
    mask = sum(1 << number for number in kept)
    held[0] = _Half(held[0].effective & mask, held[0].permitted & mask, 0)
    held[1] = _Half(0, 0, 0)
    return bool(libc.capset(ctypes.byref(header), held) == 0)
