"""Namespaces that a process leaves for ones of its own, as root or as an ordinary user."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
OWN_NETWORK = "network"
"""part of a level: the worker's own network namespace"""
SHARED_NETWORK = "shared-network"
"""part of a level: the empty network namespace that the judge shares with its workers"""
SHARED_SCOPE = "shared-scope"
"""part of a level: no namespace, but Landlock keeps judge and workers to each other's abstract Unix sockets"""
NO_INET = "no-inet"
"""part of a level: no network namespace, but the system call filter refuses every socket but Unix ones"""


def parts_of(level: str) -> tuple[str, ...]:
    """Return what keeps a worker confined, from a level such as `session+network; compilers none`.

    A network shared with the judge counts as the worker's own: it is as empty.
    """
    return tuple(level.partition(";")[0].replace(SHARED_NETWORK, OWN_NETWORK).split("+"))


def unshare(libc: ctypes.CDLL, flag: int) -> bool:
    """Leave a namespace; an ordinary user first needs a user namespace, in which root is itself again."""
    if os.geteuid() == 0:
        return bool(libc.unshare(flag) == 0)
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | flag) != 0:
        return False
    try:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
    except OSError:
        return True
    return True
