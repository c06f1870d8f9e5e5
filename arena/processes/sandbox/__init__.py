"""Confinement of untrusted processes: namespaces, Landlock, seccomp, limits; and of compilers.

`enter` is called in a freshly forked process: own session, no network, folders hidden, the others read-only, limits,
no new privileges. What follows in `confinement.py` cannot be undone: no capabilities, Landlock, a filter for
system calls. A missing mechanism is not an error: the level in force is returned, goes into every record, and
`arena doctor` tries it. A change needs the escape attempts (`escape.py`) and docs/develop/isolation.md.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from arena.processes.sandbox import mounts
from arena.processes.sandbox.namespaces import CLONE_NEWNET, CLONE_NEWNS, OWN_NETWORK, unshare

_MS_REC_PRIVATE = 0x4000 | 0x40000
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
FILE_LIMIT_BYTES = 1 << 30
SHARED_BYTES = 256 << 20
"""what a worker may keep in its own /dev/shm"""


@dataclass(frozen=True)
class Namespaces:
    """Namespaces asked for: folders to hide behind empty ones, and where `own` is given, no others to be written."""

    hide: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    network: str = ""
    """the part of the level that the judge's network has been given, where this process is to stay in that"""


def enter(walls: Namespaces) -> str:
    """Confine this process and return the level in force, such as `session+network+mount`."""
    level = ["session"]
    if os.getsid(0) != os.getpid():
        os.setsid()
    _limit()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    alone = not walls.network and unshare(libc, CLONE_NEWNET)
    if network := walls.network or (OWN_NETWORK if alone else ""):
        level.append(network)
    if _unshare_mounts(libc, alone=alone):
        if _hide(libc, walls.hide):
            level.append("mount")
        if walls.own and mounts.read_only(walls.own, SHARED_BYTES, threads_named=True):
            level.append("read-only")
        with suppress(OSError):
            os.chdir(Path.cwd())  # the same folder, as it is from here on
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return "+".join(level)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = FILE_LIMIT_BYTES if hard == resource.RLIM_INFINITY else min(hard, FILE_LIMIT_BYTES)  # never raised
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _unshare_mounts(libc: ctypes.CDLL, *, alone: bool) -> bool:
    """Take a mount namespace; `alone`: this process has left its network's, and with it its user namespace."""
    if not (libc.unshare(CLONE_NEWNS) == 0 if alone else unshare(libc, CLONE_NEWNS)):
        return False
    return bool(libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None) == 0)


def _hide(libc: ctypes.CDLL, folders: Sequence[str]) -> bool:
    hidden = [libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=4k") == 0 for folder in folders]
    return all(hidden)
