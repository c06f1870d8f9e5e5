"""A view of the file system in which only named folders can be written, in a mount namespace of one's own.

Workers and agents use it. It refuses what Landlock does not govern: new dates, modes and owners of files, and with them
the dates that reading leaves.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

_MS_BIND, _MS_REC = 0x1000, 0x4000
_SYS_MOUNT_SETATTR = 442
"""the same number on every architecture"""
_AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = -100, 0x8000, 1
SHARED_MEMORY = "/dev/shm"


class _Attributes(ctypes.Structure):
    """`struct mount_attr`."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def read_only(writable: Sequence[str], shared_bytes: int, *, threads_named: bool = False) -> bool:
    """Let nothing but these folders be written, and give the process shared memory by name that is its own.

    Needs Linux 5.12. The working folder should be entered anew: it is still the one of before. With `threads_named`
    names can be given to threads, which are files in /proc, and nothing below /proc/sys can be set.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for folder in (*writable, *(("/proc/sys",) if threads_named else ())):
        name = os.fsencode(folder)
        if libc.mount(name, name, None, _MS_BIND | _MS_REC, None) != 0:
            return False
    options = f"size={shared_bytes},mode=1777".encode()
    own = libc.mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", 0, options) == 0
    if not _set_attributes(libc, "/", _AT_RECURSIVE, _Attributes(attr_set=_ATTR_RDONLY)):
        return False
    opened = (*writable, *((SHARED_MEMORY,) if own else ()), *(("/proc",) if threads_named else ()))
    return all(_set_attributes(libc, folder, 0, _Attributes(attr_clr=_ATTR_RDONLY)) for folder in opened)


def _set_attributes(libc: ctypes.CDLL, folder: str, flags: int, attributes: _Attributes) -> bool:
    size = ctypes.sizeof(attributes)
    done = libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(folder), flags, ctypes.byref(attributes), size)
    return bool(done == 0)
