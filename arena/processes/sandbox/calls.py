"""Numbers of the system calls that the sandbox makes or filters, by machine.

From the kernel's own tables: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h. From 424 on,
a call has the same number on every machine.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

_COMMON = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_open": 434,
    "clone3": 435,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "cachestat": 451,
    "setxattrat": 463,
    "removexattrat": 466,
    "open_tree_attr": 467,
    "file_setattr": 469,
}
FIRST_UNREVIEWED = 470
"""calls from this number on came to Linux after the list of what is refused was last gone through (6.17)"""
_NONE = -1
"""where a machine has no such call"""
# name, x86-64, aarch64
_TABLE = (
    ("acct", 163, 89),
    ("add_key", 248, 217),
    ("adjtimex", 159, 171),
    ("bpf", 321, 280),
    ("chown", 92, _NONE),
    ("chroot", 161, 51),
    ("clock_adjtime", 305, 266),
    ("clock_settime", 227, 112),
    ("clone", 56, 220),
    ("create_module", 174, _NONE),
    ("delete_module", 176, 106),
    ("execve", 59, 221),
    ("execveat", 322, 281),
    ("fadvise64", 221, 223),
    ("fanotify_init", 300, 262),
    ("fchown", 93, 55),
    ("fchownat", 260, 54),
    ("fcntl", 72, 25),
    ("finit_module", 313, 273),
    ("flock", 73, 32),
    ("fork", 57, _NONE),
    ("fremovexattr", 199, 16),
    ("fsetxattr", 190, 7),
    ("futimesat", 261, _NONE),
    ("getpgid", 121, 155),
    ("getpriority", 140, 141),
    ("getsid", 124, 156),
    ("getsockopt", 55, 209),
    ("init_module", 175, 105),
    ("inotify_add_watch", 254, 27),
    ("inotify_init", 253, _NONE),
    ("inotify_init1", 294, 26),
    ("io_setup", 206, 0),
    ("ioctl", 16, 29),
    ("ioperm", 173, _NONE),
    ("iopl", 172, _NONE),
    ("ioprio_get", 252, 31),
    ("ioprio_set", 251, 30),
    ("kcmp", 312, 272),
    ("kexec_file_load", 320, 294),
    ("kexec_load", 246, 104),
    ("keyctl", 250, 219),
    ("kill", 62, 129),
    ("lchown", 94, _NONE),
    ("lookup_dcookie", 212, 18),
    ("lremovexattr", 198, 15),
    ("lsetxattr", 189, 6),
    ("madvise", 28, 233),
    ("memfd_create", 319, 279),
    ("migrate_pages", 256, 238),
    ("mincore", 27, 232),
    ("mount", 165, 40),
    ("move_pages", 279, 239),
    ("mq_getsetattr", 245, 185),
    ("mq_notify", 244, 184),
    ("mq_open", 240, 180),
    ("mq_timedreceive", 243, 183),
    ("mq_timedsend", 242, 182),
    ("mq_unlink", 241, 181),
    ("msgctl", 71, 187),
    ("msgget", 68, 186),
    ("msgrcv", 70, 188),
    ("msgsnd", 69, 189),
    ("open_by_handle_at", 304, 265),
    ("perf_event_open", 298, 241),
    ("pivot_root", 155, 41),
    ("prctl", 157, 167),
    ("preadv2", 327, 286),
    ("prlimit64", 302, 261),
    ("process_vm_readv", 310, 270),
    ("process_vm_writev", 311, 271),
    ("ptrace", 101, 117),
    ("pwritev2", 328, 287),
    ("quotactl", 179, 60),
    ("readahead", 187, 213),
    ("reboot", 169, 142),
    ("removexattr", 197, 14),
    ("request_key", 249, 218),
    ("rt_sigqueueinfo", 129, 138),
    ("rt_tgsigqueueinfo", 297, 240),
    ("sched_setaffinity", 203, 122),
    ("sched_setattr", 314, 274),
    ("sched_setparam", 142, 118),
    ("sched_setscheduler", 144, 119),
    ("seccomp", 317, 277),
    ("semctl", 66, 191),
    ("semget", 64, 190),
    ("semop", 65, 193),
    ("semtimedop", 220, 192),
    ("setdomainname", 171, 162),
    ("sethostname", 170, 161),
    ("setns", 308, 268),
    ("setpgid", 109, 154),
    ("setpriority", 141, 140),
    ("setsid", 112, 157),
    ("settimeofday", 164, 170),
    ("setxattr", 188, 5),
    ("shmat", 30, 196),
    ("shmctl", 31, 195),
    ("shmget", 29, 194),
    ("socket", 41, 198),
    ("swapoff", 168, 225),
    ("swapon", 167, 224),
    ("syslog", 103, 116),
    ("tgkill", 234, 131),
    ("timer_create", 222, 107),
    ("tkill", 200, 130),
    ("umount2", 166, 39),
    ("unshare", 272, 97),
    ("userfaultfd", 323, 282),
    ("utime", 132, _NONE),
    ("utimensat", 280, 88),
    ("utimes", 235, _NONE),
    ("vfork", 58, _NONE),
    ("vhangup", 153, 58),
)


@dataclass(frozen=True)
class Machine:
    """`audit`: how the kernel names the machine to a filter (linux/audit.h); `numbers`: calls by name."""

    name: str
    audit: int
    numbers: Mapping[str, int]
    foreign_from: int = 0
    """from this number on, calls are those of another convention (x32) on the same machine; 0: there is none"""


MACHINES = {
    "x86_64": Machine("x86_64", 0xC000003E, {**_COMMON, **{name: x for name, x, _ in _TABLE}}, 0x40000000),
    "aarch64": Machine("aarch64", 0xC00000B7, {**_COMMON, **{name: a for name, _, a in _TABLE if a != _NONE}}),
}


def machine() -> Machine | None:
    """This machine's; None where its numbers are not known here."""
    return MACHINES.get(platform.machine())
