"""The restrictions that a process takes on last and can never take down: capabilities, Landlock, seccomp.

They want nothing of this machine but its kernel: no namespace, no privilege. `ARENA_SANDBOX=basic` does without them,
for a device or a library that they turn out to disturb; the level then ends in `basic`.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from arena.errors import UsageError
from arena.processes.sandbox import landlock, seccomp
from arena.processes.sandbox.landlock import Allowed
from arena.processes.sandbox.namespaces import NO_INET, OWN_NETWORK, SHARED_NETWORK, SHARED_SCOPE
from arena.processes.sandbox.seccomp import Strictness

_DAC_OVERRIDE, _DAC_READ_SEARCH, _IPC_LOCK = 1, 2, 14
_LAST_KNOWN = 40
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 24, 47, 4
_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


class _Half(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_capabilities() -> bool:
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


SWITCH = "ARENA_SANDBOX"
_PR_SET_NO_NEW_PRIVS = 38


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """The permissions that are left to a process."""

    strictness: Strictness
    files: Allowed | None = None
    """what it may open; None: as before"""
    network: bool = False
    """whether it may speak TCP, where it has a network at all"""
    level: str = ""
    """what is in force already. A worker without a network namespace gets no sockets but Unix ones"""


def is_basic() -> bool:
    """Return whether `ARENA_SANDBOX` asks for the weaker sandbox. Raises `UsageError` for an unknown value."""
    wanted = os.environ.get(SWITCH, "full")
    if wanted not in ("full", "basic"):
        raise UsageError(f"{SWITCH}={wanted}: it can be `full`, which is the default, or `basic`")
    return wanted == "basic"


def confine(confinement: Confinement) -> str:
    """Apply the restrictions and return those in force, such as `+capabilities+landlock7+seccomp`."""
    if is_basic():
        return "+basic"
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    level = "+capabilities" if drop_capabilities() else ""
    parts = confinement.level.split("+")
    version = 0
    if confinement.files is not None:
        shared = SHARED_NETWORK in parts or SHARED_SCOPE in parts  # which holds abstract sockets itself
        version = landlock.enter(confinement.files, network=confinement.network, abstract_sockets=shared)
    level += f"+landlock{version}" if version else ""
    inet = confinement.strictness is not Strictness.WORKER or OWN_NETWORK in parts or SHARED_NETWORK in parts
    # Last: from here on this process could not put up the others.
    filtered = seccomp.enter(confinement.strictness, os.getpid(), inet=inet)
    return level + ("+seccomp" if filtered else "") + ("" if inet or not filtered else f"+{NO_INET}")


def refuse_processes(*, programs: bool = False) -> None:
    """Start threads only from here on: for a candidate that no compiler is called for. `basic` does without.

    `programs`: whether this process may still become another program.
    """
    if not is_basic():
        seccomp.refuse_processes(programs=programs)
