"""System calls refused to untrusted programs: filters in classic BPF, as seccomp(2) takes them.

What is refused fails with EPERM; `clone3` and io_uring fail with ENOSYS, upon which libraries take the older way. The
filter sees numbers, not what pointers lead to: hence `clone3`, whose flags lie in memory, cannot be allowed in part.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from arena.sandbox.calls import Machine, machine

REFUSED = (
    # looking into other processes, and taking what they hold
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise", "process_mrelease"),
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "syslog", "lookup_dcookie"),
    # another view of the file system
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "setns", "open_by_handle_at", "fanotify_init"),
    # the machine as a whole
    *("kexec_load", "kexec_file_load", "create_module", "init_module", "finit_module", "delete_module", "reboot"),
    *("swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "adjtimex"),
    *("clock_adjtime", "iopl", "ioperm", "sethostname", "setdomainname", "vhangup"),
)
ABSENT = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
_NAMESPACES = 0x7E020000
"""every CLONE_NEW* flag but CLONE_NEWTIME, whose bit means something else to clone(2)"""
_NEW_TIME = 0x80
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into a terminal"""
_EVERYTHING_OF_A_USER = {"setpriority": 2, "ioprio_set": 3}
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_SCHEDULING = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "pidfd_open")
_LIMITS = ("prlimit64", "migrate_pages", "move_pages")
_LEAVING = ("setsid", "setpgid")

_LOAD, _JUMP_EQUAL, _JUMP_NOT_BELOW, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_NEGATIVE = 0x80000000
_SET_MODE_FILTER, _SPEC_ALLOW = 1, 4


class Strictness(StrEnum):
    """Who is filtered."""

    PROGRAM = "program"
    """compilers and agents: processes of many ids, in namespaces or under a user of their own"""
    HOST = "host"
    """a host: it may neither leave its process group nor name a process that is older than itself"""


class _Line(NamedTuple):
    code: int
    then: int
    otherwise: int
    value: int

    def packed(self) -> bytes:
        return struct.pack("=HBBI", *self)


def _refuse(number: int = errno.EPERM) -> _Line:
    return _Line(_RETURN, 0, 0, _ERRNO | number)


_PASS = _Line(_RETURN, 0, 0, _ALLOW)


def program(strictness: Strictness, here: Machine, pid: int, *, signals_scoped: bool = False) -> bytes:
    """The filter, an array of `struct sock_filter`. `pid` is whose a host's filter is.

    With `signals_scoped` Landlock already keeps a host's signals from all but its own descendants, and exactly so.
    """
    lines = [
        _Line(_LOAD, 0, 0, _MACHINE),
        _Line(_JUMP_EQUAL, 1, 0, here.audit),
        _refuse(),
        _Line(_LOAD, 0, 0, _NUMBER),
    ]
    if here.foreign_from:
        lines += [_Line(_JUMP_NOT_BELOW, 0, 1, here.foreign_from), _refuse()]
    for name, tests in _examined(strictness, pid, signals_scoped=signals_scoped):
        if name in here.numbers:
            # What is not refused in the block is allowed at its end: the number need not be loaded again.
            lines += [_Line(_JUMP_EQUAL, 0, len(tests) + 1, here.numbers[name]), *tests, _PASS]
    for names, answer in ((_refused(strictness, signals_scoped=signals_scoped), errno.EPERM), (ABSENT, errno.ENOSYS)):
        for name in names:
            if name in here.numbers:
                lines += [_Line(_JUMP_EQUAL, 0, 1, here.numbers[name]), _refuse(answer)]
    return b"".join(line.packed() for line in (*lines, _PASS))


def enter(strictness: Strictness, pid: int, *, signals_scoped: bool = False) -> bool:
    """Filter this process and all that it starts, for good; whether it worked. Wants no-new-privileges to be set."""
    here = machine()
    if here is None:
        return False
    code = program(strictness, here, pid, signals_scoped=signals_scoped)

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))

    filter_program = Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    # Older kernels would else slow all code down against speculative reads; so do without that.
    return any(
        libc.syscall(here.numbers["seccomp"], _SET_MODE_FILTER, flags, ctypes.byref(filter_program)) == 0
        for flags in (_SPEC_ALLOW, 0)
    )


def _refused(strictness: Strictness, *, signals_scoped: bool) -> Sequence[str]:
    if strictness is Strictness.PROGRAM:
        return REFUSED
    # A descriptor of a process says nothing of which process it is.
    return (*REFUSED, *_LEAVING, *(() if signals_scoped else ("pidfd_send_signal",)))


def _examined(strictness: Strictness, pid: int, *, signals_scoped: bool) -> list[tuple[str, list[_Line]]]:
    """Calls that are refused for some arguments only; the most frequent first."""
    found = [
        ("ioctl", [_argument(1), *(line for value in _TERMINAL_INPUT for line in _refused_value(value))]),
        ("clone", [_argument(0), *_refused_bits(_NAMESPACES)]),
        ("unshare", [_argument(0), *_refused_bits(_NAMESPACES | _NEW_TIME)]),
    ]
    if strictness is Strictness.HOST:
        found += [(name, _own_only(0, pid)) for name in _LIMITS]
        found += [(name, _not_older(0, pid)) for name in _SCHEDULING]
        for name, users in _EVERYTHING_OF_A_USER.items():
            found.append((name, [_argument(0), *_refused_value(users), *_not_older(1, pid)]))
        if not signals_scoped:
            found += [(name, _not_older(0, pid)) for name in _SIGNALS]
    return found


def _argument(index: int) -> _Line:
    """Load the lower half of an argument: ids, flags and requests are 32 bits wide for the kernel too."""
    return _Line(_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _refused_value(value: int) -> list[_Line]:
    return [_Line(_JUMP_EQUAL, 0, 1, value), _refuse()]


def _refused_bits(mask: int) -> list[_Line]:
    return [_Line(_JUMP_ANY_BIT, 0, 1, mask), _refuse()]


def _own_only(index: int, pid: int) -> list[_Line]:
    return [_argument(index), _Line(_JUMP_EQUAL, 2, 0, 0), _Line(_JUMP_EQUAL, 1, 0, pid), _refuse()]


def _not_older(index: int, pid: int) -> list[_Line]:
    """Ids of 0, of this process and of later ones, its threads and children among them; groups (negative) likewise.

    The judge, its template and their threads of that time have lower ids. After ids have wrapped around this errs.
    """
    return [
        _argument(index),
        _Line(_JUMP_EQUAL, 5, 0, 0),
        _Line(_JUMP_NOT_BELOW, 0, 2, _NEGATIVE),
        _Line(_JUMP_NOT_BELOW, 2, 0, (1 << 32) - pid + 1),  # a group of a lower id, or all processes (-1)
        _PASS,
        _Line(_JUMP_NOT_BELOW, 1, 0, pid),
        _refuse(),
    ]
