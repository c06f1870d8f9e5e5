"""Landlock: what a process may open, connect and signal, given up for good, without any privilege.

Rules name what is allowed; everything else that an ABI can govern is refused. The ABI (linux/landlock.h): 1 files,
2 linking and renaming between folders, 3 truncating, 4 TCP, 6 abstract Unix sockets and signals. A process behind it
cannot trace, or read through /proc, a process outside, and cannot mount.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from arena.processes.sandbox.calls import machine

SIGNALS_ABI = 6
_VERSION_QUESTION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_MAKE_DEVICES = 1 << 6 | 1 << 11
_FILES_OF_ABI_1 = (1 << 13) - 1
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_TCP = 3
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2


@dataclass(frozen=True)
class Allowed:
    """Files and folders with all below them, by path; those that do not exist are passed over.

    `listed` folders may be listed with all below them, and nothing in them opened.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def abi() -> int:
    """The version that this kernel has; 0 for none: not built in, not enabled at boot, or refused to us."""
    here = machine()
    if here is None:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(here.numbers["landlock_create_ruleset"], None, 0, _VERSION_QUESTION)))


def enter(allowed: Allowed, *, network: bool = False, abstract_sockets: bool = False) -> int:
    """Allow this process and its descendants only this; returns the ABI in force, 0 where there is none.

    With `network` TCP is left open, with `abstract_sockets` those of processes outside. Wants no-new-privileges to be
    set.
    """
    version, here = abi(), machine()
    if not version or here is None:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    handled = _handled(version)
    attributes = _Ruleset(
        handled,
        _TCP if version >= 4 and not network else 0,
        _SIGNALS | (0 if abstract_sockets else _ABSTRACT_SOCKETS) if version >= SIGNALS_ABI else 0,
    )
    size = 8 if version < 4 else 16 if version < SIGNALS_ABI else 24
    ruleset = libc.syscall(here.numbers["landlock_create_ruleset"], ctypes.byref(attributes), size, 0)
    if ruleset < 0:
        return 0
    try:
        read = _EXECUTE | _READ_FILE | _READ_FOLDER
        for paths, rights in (
            (allowed.read, read),
            (allowed.write, handled & ~_MAKE_DEVICES),
            (allowed.listed, _READ_FOLDER),
        ):
            for path in paths:
                _allow(libc, here.numbers["landlock_add_rule"], ruleset, path, rights & handled)
        done = libc.syscall(here.numbers["landlock_restrict_self"], ruleset, 0)
        return version if done == 0 else 0
    finally:
        os.close(ruleset)


def scope_abstract_sockets() -> bool:
    """Keep this process and its descendants to each other's abstract Unix sockets; False before ABI 6.

    Files, TCP and signals stay as they are. Wants no-new-privileges to be set.
    """
    here = machine()
    if here is None or abi() < SIGNALS_ABI:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = _Ruleset(0, 0, _ABSTRACT_SOCKETS)
    ruleset = libc.syscall(here.numbers["landlock_create_ruleset"], ctypes.byref(attributes), 24, 0)
    if ruleset < 0:
        return False
    try:
        return bool(libc.syscall(here.numbers["landlock_restrict_self"], ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def without(shown: Iterable[str], hidden: Sequence[str]) -> Allowed:
    """Return what to allow of `shown` so that nothing `hidden` is: rules cannot take back."""
    secrets = {Path(folder).resolve() for folder in hidden}
    read: list[str] = []
    listed: list[str] = []
    waiting = [Path(folder).resolve() for folder in shown]
    while waiting:
        folder = waiting.pop()
        if any(folder.is_relative_to(secret) for secret in secrets):
            continue
        if any(secret.is_relative_to(folder) for secret in secrets):
            listed.append(str(folder))
            with suppress(OSError):
                waiting += [inner for inner in folder.iterdir() if not inner.is_symlink()]
        else:
            read.append(str(folder))
    return Allowed(read=tuple(dict.fromkeys(read)), listed=tuple(dict.fromkeys(listed)))


def _handled(version: int) -> int:
    return _FILES_OF_ABI_1 | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)


def _allow(libc: ctypes.CDLL, call: int, ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights &= -1 if Path(f"/proc/self/fd/{opened}").is_dir() else _OF_A_FILE
        rule = _Beneath(rights, opened)
        libc.syscall(call, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)
