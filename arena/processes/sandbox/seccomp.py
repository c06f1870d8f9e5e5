"""System calls of untrusted programs: filters in classic BPF, as seccomp(2) takes them.

A worker may make those on a list of what kernels need, compilers and agents all but those on a list of what none needs.
What is refused fails with EPERM. `clone3`, io_uring and calls that are newer than this list fail with ENOSYS: libraries
then take the older way.
Files are seen by others too: nobody watches them; advice on their pages and workers' locks are said to be taken.
The filter sees numbers, not what pointers lead to: `clone3`, whose flags lie in memory, cannot be allowed in part.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from arena.processes.sandbox.calls import FIRST_UNREVIEWED, Machine, machine

REFUSED = (
    # reading other processes, and taking what they hold
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise", "process_mrelease"),
    *("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "syslog", "lookup_dcookie"),
    # another view of the file system
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "setns", "open_by_handle_at", "fanotify_init"),
    # the machine as a whole
    *("kexec_load", "kexec_file_load", "create_module", "init_module", "finit_module", "delete_module", "reboot"),
    *("swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "adjtimex"),
    *("clock_adjtime", "iopl", "ioperm", "sethostname", "setdomainname", "vhangup"),
    # which pages of a file are in memory, whoever has read them
    "mincore",
)
ABSENT = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "cachestat")
PRETENDED = ("fadvise64", "readahead")
"""advice about pages of a file; what a reader drops or brings would be a mark for the next one"""
FLAGGED_TRANSFERS = ("preadv2", "pwritev2")
"""with flags they read only what is in memory, or leave nothing there; older kernels know none of these flags"""
PAGING_ADVICE = {"MADV_COLD": 20, "MADV_PAGEOUT": 21}
REFUSED_TO_WORKERS = (
    # leaving the process group
    *("setsid", "setpgid"),
    # having the kernel send a signal, later or in another's name; signals by descriptor, which tells no process
    *("timer_create", "mq_notify", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "tkill", "pidfd_send_signal", "pidfd_open"),
    # memory and messages that outlive the process that left them
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_getsetattr", "memfd_secret"),
    # marks on files that it need not be able to open: Landlock governs none of these
    *("chown", "fchown", "fchownat", "lchown", "utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr"),
    *("fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr"),
    # what others do to files
    *("inotify_init", "inotify_init1", "inotify_add_watch"),
)
ABSENT_FOR_WORKERS = ("io_setup",)
"""reads and writes that go on while the process is stopped, like io_uring's"""
ALLOWED_TO_WORKERS = (
    # memory of its own
    *("mmap", "munmap", "mprotect", "mremap", "brk", "msync", "mlock", "mlock2", "munlock", "mlockall", "munlockall"),
    *("membarrier", "pkey_mprotect", "pkey_alloc", "pkey_free", "mbind", "set_mempolicy", "get_mempolicy"),
    *("map_shadow_stack", "mseal"),
    # files that Landlock and the mounts let it reach
    *("open", "openat", "openat2", "creat", "close", "close_range", "read", "write", "pread64", "pwrite64", "readv"),
    *("writev", "preadv", "pwritev", "lseek", "dup", "dup2", "dup3", "stat", "fstat", "lstat", "newfstatat", "statx"),
    *("statfs", "fstatfs", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents", "getdents64"),
    *("getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat"),
    *("renameat2", "link", "linkat", "symlink", "symlinkat", "truncate", "ftruncate", "fallocate", "fsync"),
    *("fdatasync", "sendfile", "copy_file_range", "chmod", "fchmod", "fchmodat", "fchmodat2", "umask", "getxattr"),
    *("lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr", "memfd_create"),
    # waiting, and talking to the judge
    *("poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait"),
    *("epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "pipe", "pipe2", "signalfd", "signalfd4"),
    *("timerfd_create", "timerfd_settime", "timerfd_gettime", "socketpair", "bind", "listen", "accept", "accept4"),
    *("connect", "getsockname", "getpeername", "setsockopt", "shutdown", "sendto", "recvfrom", "sendmsg", "recvmsg"),
    *("sendmmsg", "recvmmsg"),
    # threads, and programs until a second filter takes these
    *("futex", "futex_waitv", "set_robust_list", "set_tid_address", "rseq", "arch_prctl", "sched_yield"),
    *("sched_getaffinity", "sched_getscheduler", "sched_getparam", "sched_get_priority_max"),
    *("sched_get_priority_min", "getcpu", "execve", "execveat", "fork", "vfork", "wait4", "waitid", "exit"),
    *("exit_group", "seccomp"),
    # signals to itself
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait"),
    *("sigaltstack", "pause", "alarm", "getitimer", "setitimer", "restart_syscall"),
    # time, and who and where it is
    *("clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "times", "getpid"),
    *("gettid", "getppid", "getpgrp", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid"),
    *("getresgid", "capget", "getrlimit", "setrlimit", "getrusage", "uname", "sysinfo", "getrandom"),
)
"""what kernels, PyTorch, Triton and the runtimes of GPUs need; all else that no list here names fails with ENOSYS"""
_NAMESPACES = 0x7E020000
"""every CLONE_NEW* flag but CLONE_NEWTIME, whose bit means something else to clone(2)"""
_NEW_TIME = 0x80
_CLONE_PARENT, _CLONE_THREAD = 0x8000, 0x10000
_CONTINUE, _CHILD = 18, 17
"""SIGCONT and SIGCHLD"""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into a terminal"""
SIGNALLING_IOCTLS = {
    "FIOSETOWN": 0x8901,
    "SIOCSPGRP": 0x8902,
    "FIOASYNC": 0x5452,
    "TIOCSCTTY": 0x540E,
    "TIOCSPGRP": 0x5410,
    "TIOCNOTTY": 0x5422,
    "TIOCVHANGUP": 0x5437,
    "TIOCSIG": 0x40045436,
    "VT_SETMODE": 0x5602,
    "KDSIGACCEPT": 0x4B4E,
    "USBDEVFS_SUBMITURB": 0x8038550A,
    "USBDEVFS_DISCSIGNAL": 0x8010550E,
}
"""by which a file, a terminal or a device comes to send signals"""
FILE_COMMANDS = {
    "F_SETOWN": 8,
    "F_SETSIG": 10,
    "F_SETOWN_EX": 15,
    "F_SETLEASE": 1024,
    "F_NOTIFY": 1026,
}
"""of fcntl, by which a file comes to send signals"""
_F_SETFL, _O_ASYNC = 4, 0x2000
LOCKING_COMMANDS = {"F_SETLK": 6, "F_SETLKW": 7, "F_OFD_SETLK": 37, "F_OFD_SETLKW": 38}
"""of fcntl. A worker's locks are said to be taken: it has no process to share a file with."""
READING_LOCKS = {"F_GETLK": 5, "F_OFD_GETLK": 36}
PROCESS_OPTIONS = {"PR_SET_PDEATHSIG": 1, "PR_SCHED_CORE": 62}
"""of prctl: a signal at the end of the parent, and sharing a core's cookie with another process"""
_OF_A_USER = {"setpriority": 2, "getpriority": 2, "ioprio_set": 3, "ioprio_get": 3}
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
"""families of sockets that a worker may open: the first alone where it has no network namespace"""
_LIMITS = ("prlimit64", "migrate_pages", "move_pages")
_GROUPS = ("getpgid", "getsid")
_SOCKET_LEVEL, _SOCKET_COOKIE = 1, 57
"""SOL_SOCKET and SO_COOKIE, which tells how many sockets others have opened"""
_SCHEDULING = ("sched_setscheduler", "sched_setparam", "sched_setattr")

_LOAD, _AND, _JUMP_EQUAL, _JUMP_NOT_BELOW, _JUMP_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_SET_MODE_FILTER, _SPEC_ALLOW = 1, 4


class Strictness(StrEnum):
    """The kind of process that is filtered."""

    PROGRAM = "program"
    """compilers and agents: processes of many ids, in namespaces or under a user of their own"""
    WORKER = "worker"
    """a worker: it may neither leave its process group nor name another process, nor leave anything to one"""


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
_PRETEND = _refuse(0)
"""Say that it was done. ROCm's runtime sets the affinity of each thread that it starts, and fails where it cannot."""
_SIGNAL_AT_ITS_END = (
    _Line(_AND, 0, 0, 0xFF),
    _Line(_JUMP_EQUAL, 2, 0, 0),
    _Line(_JUMP_EQUAL, 1, 0, _CHILD),
    _refuse(),
)
"""of clone's flags: what the parent is sent when the new process ends"""


def program(strictness: Strictness, here: Machine, pid: int, *, inet: bool = True) -> bytes:
    """The filter, an array of `struct sock_filter`. `pid` is whose a worker's filter is.

    `inet`: whether a worker may open sockets of IP and netlink, which an empty network namespace makes useless. It can
    never open those of a virtual machine's host (vsock) and others, which know no namespaces.
    """
    lines = [
        _Line(_LOAD, 0, 0, _MACHINE),
        _Line(_JUMP_EQUAL, 1, 0, here.audit),
        _refuse(),
        _Line(_LOAD, 0, 0, _NUMBER),
    ]
    if here.foreign_from:
        lines += [_Line(_JUMP_NOT_BELOW, 0, 1, here.foreign_from), _refuse()]
    lines += [_Line(_JUMP_NOT_BELOW, 0, 1, FIRST_UNREVIEWED), _refuse(errno.ENOSYS)]
    for name, tests in _argument_rules(strictness, pid, inet=inet):
        if name in here.numbers:
            # What is not refused in the block is allowed at its end: the number need not be loaded again.
            lines += [_Line(_JUMP_EQUAL, 0, len(tests) + 1, here.numbers[name]), *tests, _PASS]
    of_workers = (REFUSED_TO_WORKERS, ABSENT_FOR_WORKERS) if strictness is Strictness.WORKER else ((), ())
    for names, answer in (((*REFUSED, *of_workers[0]), errno.EPERM), ((*ABSENT, *of_workers[1]), errno.ENOSYS)):
        for name in names:
            if name in here.numbers:
                lines += [_Line(_JUMP_EQUAL, 0, 1, here.numbers[name]), _refuse(answer)]
    if strictness is Strictness.WORKER:
        lines += [*_allowed(here), _refuse(errno.ENOSYS)]
    return b"".join(line.packed() for line in (*lines, _PASS))


def _allowed(here: Machine) -> list[_Line]:
    """Pass what workers may call, by runs of numbers that follow one another."""
    lines: list[_Line] = []
    numbers = sorted(here.numbers[name] for name in ALLOWED_TO_WORKERS if name in here.numbers)
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        lines += [_Line(_JUMP_NOT_BELOW, 0, 2, found[0]), _Line(_JUMP_NOT_BELOW, 1, 0, found[-1] + 1), _PASS]
    return lines


def processes(here: Machine, *, programs: bool = False) -> bytes:
    """A second filter, for programs that start none: threads, and no processes.

    Without `programs` it cannot become another program either, which would hold none of what this one refuses.
    """
    lines = [_Line(_LOAD, 0, 0, _NUMBER)]
    for name in ("fork", "vfork", *(() if programs else ("execve", "execveat"))):
        if name in here.numbers:
            lines += [_Line(_JUMP_EQUAL, 0, 1, here.numbers[name]), _refuse()]
    thread = [_argument(0), _Line(_JUMP_ANY_BIT, 1, 0, _CLONE_THREAD), _refuse()]
    lines += [_Line(_JUMP_EQUAL, 0, len(thread), here.numbers["clone"]), *thread, _PASS]
    return b"".join(line.packed() for line in lines)


def enter(strictness: Strictness, pid: int, *, inet: bool = True) -> bool:
    """Filter this process and all that it starts, for good; whether it worked. Wants no-new-privileges to be set."""
    here = machine()
    return here is not None and _load(program(strictness, here, pid, inet=inet), here)


def refuse_processes(*, programs: bool = False) -> bool:
    """From here on start threads only; whether it worked. `programs`: see `processes`. Wants no-new-privileges."""
    here = machine()
    return here is not None and _load(processes(here, programs=programs), here)


def _load(code: bytes, here: Machine) -> bool:
    class FilterProgram(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))

    filter_program = FilterProgram(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    # Older kernels would else slow all code down against speculative reads; so do without that.
    return any(
        libc.syscall(here.numbers["seccomp"], _SET_MODE_FILTER, flags, ctypes.byref(filter_program)) == 0
        for flags in (_SPEC_ALLOW, 0)
    )


def _argument_rules(strictness: Strictness, pid: int, *, inet: bool) -> list[tuple[str, list[_Line]]]:
    """Calls that are refused for some arguments only; the most frequent first."""
    if strictness is Strictness.WORKER:
        families = (UNIX, INET, INET6, NETLINK) if inet else (UNIX,)
        sockets = ("socket", [_argument(0), *_allowed_values(families)])
        return [*_worker_argument_rules(pid), sockets, *_page_rules()]
    return [
        *_page_rules(),
        # As where a user watches too much: programs then poll their files.
        ("inotify_add_watch", [_refuse(errno.ENOSPC)]),
        ("fcntl", [_argument(1), *_refused_values((FILE_COMMANDS["F_NOTIFY"],))]),
        ("ioctl", [_argument(1), *_refused_values(_TERMINAL_INPUT)]),
        ("clone", [_argument(0), *_refused_bits(_NAMESPACES)]),
        ("unshare", [_argument(0), *_refused_bits(_NAMESPACES | _NEW_TIME)]),
    ]


def _worker_argument_rules(pid: int) -> list[tuple[str, list[_Line]]]:
    own = _own_only(0, pid)
    refused = _refused_values((*FILE_COMMANDS.values(), *READING_LOCKS.values()))
    locks, cookie = _refused_values(LOCKING_COMMANDS.values(), 0), _refused_values((_SOCKET_COOKIE,))
    asynchronous = [_Line(_JUMP_EQUAL, 0, 3, _F_SETFL), _argument(2), *_refused_bits(_O_ASYNC)]
    return [
        ("ioctl", [_argument(1), *_refused_values((*_TERMINAL_INPUT, *SIGNALLING_IOCTLS.values()))]),
        ("fcntl", [_argument(1), *refused, *locks, *asynchronous]),
        ("flock", [_PRETEND]),
        ("prctl", [_argument(0), *_refused_values(PROCESS_OPTIONS.values())]),
        ("clone", [_argument(0), *_refused_bits(_NAMESPACES | _CLONE_PARENT), *_SIGNAL_AT_ITS_END]),
        ("unshare", [_argument(0), *_refused_bits(_NAMESPACES | _NEW_TIME)]),
        ("sched_setaffinity", [_PRETEND]),
        *((name, own) for name in (*_LIMITS, *_SCHEDULING, *_GROUPS)),
        ("getsockopt", [_argument(1), _Line(_JUMP_EQUAL, 0, 3, _SOCKET_LEVEL), _argument(2), *cookie]),
        *((name, [_argument(0), *_refused_values((users,)), *_own_only(1, pid)]) for name, users in _OF_A_USER.items()),
        # SIGCONT has one use: to go on where the judge has stopped a worker.
        ("kill", [_argument(1), *_refused_values((_CONTINUE,)), *own]),
        ("tgkill", [_argument(2), *_refused_values((_CONTINUE,)), *own]),
    ]


def _page_rules() -> list[tuple[str, list[_Line]]]:
    """Nobody may mark pages of files that others read, nor see which of them are in memory."""
    unflagged = [_argument(5), _Line(_JUMP_EQUAL, 1, 0, 0), _refuse(errno.EOPNOTSUPP)]
    return [
        *((name, [_PRETEND]) for name in PRETENDED),
        *((name, unflagged) for name in FLAGGED_TRANSFERS),
        ("madvise", [_argument(2), *_refused_values(PAGING_ADVICE.values(), errno.EINVAL)]),
    ]


def _argument(index: int) -> _Line:
    """Load the lower half of an argument: ids, flags and requests are 32 bits wide for the kernel too."""
    return _Line(_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _refused_values(values: Iterable[int], number: int = errno.EPERM) -> list[_Line]:
    return [line for value in values for line in (_Line(_JUMP_EQUAL, 0, 1, value), _refuse(number))]


def _allowed_values(values: Sequence[int]) -> list[_Line]:
    """Refuse every other value: each jump leads past the refusal at the end."""
    return [*(_Line(_JUMP_EQUAL, len(values) - index, 0, one) for index, one in enumerate(values)), _refuse()]


def _refused_bits(mask: int) -> list[_Line]:
    return [_Line(_JUMP_ANY_BIT, 0, 1, mask), _refuse()]


def _own_only(index: int, pid: int) -> list[_Line]:
    """0 and the id of the worker: not those of others, older or younger, nor of the worker's own other threads."""
    return [_argument(index), *_allowed_values((0, pid))]
