"""Filters, run here by a small interpreter of classic BPF, for both machines; and one that the kernel runs."""

from __future__ import annotations

import errno
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from arena.processes.sandbox import seccomp
from arena.processes.sandbox.calls import FIRST_UNREVIEWED, MACHINES, Machine
from arena.processes.sandbox.seccomp import Strictness, program
from tests.processes.sandbox import recorded_calls, signalling

PID = 5000
ALLOWED, PRETENDED = 0, -1


def answer(code: bytes, here: Machine, call: str | int, *arguments: int, audit: int | None = None) -> int:
    """What the filter says to a call: 0, the error, or -1 where it only says that it was done."""
    number = here.numbers[call] if isinstance(call, str) else call
    six = [argument & (1 << 64) - 1 for argument in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("=IIQ6Q", number, here.audit if audit is None else audit, 0, *six)
    lines = list(struct.iter_unpack("=HBBI", code))
    at, loaded = 0, 0
    while True:
        kind, then, otherwise, value = lines[at]
        if kind == 0x06:
            return (value & 0xFFFF or PRETENDED) if value >> 16 == 5 else ALLOWED
        if kind == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
            at += 1
            continue
        if kind == 0x54:
            loaded &= value
            at += 1
            continue
        holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[kind]
        at += 1 + (then if holds else otherwise)


@pytest.fixture(params=sorted(MACHINES))
def here(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


@pytest.fixture
def worker(here: Machine) -> bytes:
    return program(Strictness.WORKER, here, PID)


def test_what_no_candidate_needs_is_refused_to_all(here: Machine) -> None:
    for strictness in Strictness:
        code = program(strictness, here, PID)
        for name in seccomp.REFUSED:
            if name in here.numbers:
                assert answer(code, here, name) == errno.EPERM, name
        assert all(answer(code, here, name) == errno.ENOSYS for name in seccomp.ABSENT)


def test_other_machines_and_conventions_are_refused(here: Machine, worker: bytes) -> None:
    assert answer(worker, here, "ioctl", audit=0x40000003) == errno.EPERM
    if here.foreign_from:
        assert answer(worker, here, here.foreign_from + here.numbers["ptrace"]) == errno.EPERM


def test_calls_that_came_after_the_list_are_absent(here: Machine) -> None:
    """Each new call of Linux is one that nobody has looked at."""
    assert max(here.numbers.values()) == FIRST_UNREVIEWED - 1
    for strictness in Strictness:
        code = program(strictness, here, PID)
        assert {answer(code, here, number) for number in (FIRST_UNREVIEWED, 500, 9999)} == {errno.ENOSYS}
    assert answer(program(Strictness.PROGRAM, here, PID), here, FIRST_UNREVIEWED - 2) == ALLOWED  # file_getattr


def test_a_worker_may_call_what_a_list_names_and_nothing_else(here: Machine, worker: bytes) -> None:
    lists = (seccomp.REFUSED, seccomp.REFUSED_TO_WORKERS, seccomp.ABSENT, seccomp.ABSENT_FOR_WORKERS)
    assert not set(seccomp.ALLOWED_TO_WORKERS) & {name for names in lists for name in names}
    allowed = {here.numbers[name] for name in seccomp.ALLOWED_TO_WORKERS if name in here.numbers}
    assert all(answer(worker, here, number) == ALLOWED for number in allowed)
    named = {number for name, number in here.numbers.items() if name not in seccomp.ALLOWED_TO_WORKERS}
    unnamed = set(range(FIRST_UNREVIEWED)) - allowed - named
    assert len(unnamed) > 100
    assert {answer(worker, here, number) for number in unnamed} == {errno.ENOSYS}


@pytest.mark.parametrize("platform", [file.stem.partition("-")[2] for file in recorded_calls.PLACE.glob("calls-*.txt")])
def test_honest_kernels_call_nothing_that_is_not_allowed(platform: str) -> None:
    here, used = MACHINES["x86_64"], recorded_calls.recorded(platform)
    worker = program(Strictness.WORKER, here, PID)
    assert {"mmap", "read", "futex"} <= set(used)
    first = {"socket": socket.AF_UNIX}  # a record has names alone; sockets of other kinds are refused below
    refused = {name for name in used if answer(worker, here, name, first.get(name, 0)) not in (ALLOWED, PRETENDED)}
    assert refused <= recorded_calls.IN_VAIN


def test_threads_and_forks_are_allowed_and_namespaces_are_not(here: Machine, worker: bytes) -> None:
    thread, fork = 0x3D0F00, 0x1200011
    assert answer(worker, here, "clone", thread) == answer(worker, here, "clone", fork) == ALLOWED
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(worker, here, "clone", fork | flag) == errno.EPERM
        assert answer(worker, here, "unshare", flag) == errno.EPERM
    assert answer(worker, here, "unshare", 0x80) == errno.EPERM


def test_a_terminal_cannot_be_typed_into(here: Machine, worker: bytes) -> None:
    assert answer(worker, here, "ioctl", 0, 0x5412) == errno.EPERM
    assert answer(worker, here, "ioctl", 0, 0x5412 | 1 << 40) == errno.EPERM, "the kernel drops the upper half"
    assert answer(worker, here, "ioctl", 0, 0xC0304627) == ALLOWED, "a call to a GPU's driver"


def test_sockets_are_unix_ones_where_the_network_is_not_its_own(here: Machine, worker: bytes) -> None:
    unix, inet, inet6, netlink, others = 1, 2, 10, 16, (0, 17, 31, 38, 40)
    assert all(answer(worker, here, "socket", family) == ALLOWED for family in (unix, inet, inet6, netlink))
    alone = program(Strictness.WORKER, here, PID, inet=False)
    assert answer(alone, here, "socket", unix) == ALLOWED
    assert all(answer(alone, here, "socket", family) == errno.EPERM for family in (inet, inet6, netlink))
    for code in (worker, alone):
        assert all(answer(code, here, "socket", family) == errno.EPERM for family in others), "vsock, and more"
    assert answer(program(Strictness.PROGRAM, here, PID, inet=False), here, "socket", inet) == ALLOWED


OTHERS = (1, PID - 1, PID + 1, 1 << 22)


@pytest.mark.parametrize("name", ["kill", "tgkill"])
def test_no_other_process_can_be_signalled_and_none_continued(here: Machine, worker: bytes, name: str) -> None:
    """A worker may raise and abort; what it has started ends with it."""
    abort, go_on = ((6,), (18,)) if name == "kill" else ((PID, 6), (PID, 18))
    assert answer(worker, here, name, PID, *abort) == ALLOWED
    assert all(answer(worker, here, name, pid, *abort) == errno.EPERM for pid in (*OTHERS, -1, -PID, -7))
    assert all(answer(worker, here, name, pid, *go_on) == errno.EPERM for pid in (0, PID, *OTHERS))


@pytest.mark.parametrize("name", ["sched_setscheduler", "sched_setparam", "sched_setattr", "prlimit64", "move_pages"])
def test_no_other_process_can_be_scheduled_or_limited(here: Machine, worker: bytes, name: str) -> None:
    """Not a younger one either: from its second evaluation on, the baseline's worker is that."""
    assert answer(worker, here, name, 0) == answer(worker, here, name, PID) == ALLOWED
    assert all(answer(worker, here, name, pid) == errno.EPERM for pid in OTHERS)


@pytest.mark.parametrize("name", ["getpgid", "getsid"])
def test_no_other_process_is_told_of(here: Machine, worker: bytes, name: str) -> None:
    assert answer(worker, here, name, 0) == answer(worker, here, name, PID) == ALLOWED
    assert all(answer(worker, here, name, pid) == errno.EPERM for pid in OTHERS)


def test_no_socket_says_how_many_others_were_opened(here: Machine, worker: bytes) -> None:
    level, cookie, error = 1, 57, 4
    assert answer(worker, here, "getsockopt", 5, level, cookie) == errno.EPERM
    assert answer(worker, here, "getsockopt", 5, level, error) == answer(worker, here, "getsockopt", 5, 6, cookie) == 0


@pytest.mark.parametrize(
    ("name", "everything_of_a_user"), [("setpriority", 2), ("getpriority", 2), ("ioprio_set", 3), ("ioprio_get", 3)]
)
def test_no_other_process_can_be_reniced(here: Machine, worker: bytes, name: str, everything_of_a_user: int) -> None:
    assert answer(worker, here, name, 0, 0) == answer(worker, here, name, 0, PID) == ALLOWED
    assert all(answer(worker, here, name, 0, pid) == errno.EPERM for pid in OTHERS)
    assert answer(worker, here, name, everything_of_a_user, 0) == errno.EPERM


def test_affinity_is_set_in_word_only(here: Machine, worker: bytes) -> None:
    """ROCm's runtime sets that of each thread it starts, and else fails; a filter cannot know which ids these have."""
    assert all(answer(worker, here, "sched_setaffinity", pid) == PRETENDED for pid in (0, PID, *OTHERS))


@pytest.mark.parametrize("name", sorted(seccomp.REFUSED_TO_WORKERS))
def test_what_outlives_a_host_or_signals_for_it_is_refused(here: Machine, worker: bytes, name: str) -> None:
    if name not in here.numbers:
        pytest.skip(f"{here.name} has no {name}")
    assert answer(worker, here, name) == errno.EPERM
    others = errno.ENOSPC if name == "inotify_add_watch" else ALLOWED
    assert name in seccomp.REFUSED or answer(program(Strictness.PROGRAM, here, PID), here, name) == others


def test_no_file_can_be_made_to_signal(here: Machine, worker: bytes) -> None:
    assert all(answer(worker, here, "fcntl", 3, value) == errno.EPERM for value in seccomp.FILE_COMMANDS.values())
    assert answer(worker, here, "fcntl", 3, 4, 0x2000 | 0x800) == errno.EPERM, "F_SETFL with O_ASYNC"
    assert answer(worker, here, "fcntl", 3, 4, 0x800) == ALLOWED, "F_SETFL with O_NONBLOCK"
    assert all(answer(worker, here, "fcntl", 3, value, 0x2000) == ALLOWED for value in (1, 2, 3, 1030)), "no F_SETFL"
    assert all(answer(worker, here, "ioctl", 3, value) == errno.EPERM for value in seccomp.SIGNALLING_IOCTLS.values())


@pytest.mark.parametrize("strictness", list(Strictness))
def test_no_page_of_a_file_is_marked_or_looked_at(here: Machine, strictness: Strictness) -> None:
    code = program(strictness, here, PID)
    assert all(answer(code, here, name) == PRETENDED for name in seccomp.PRETENDED)
    for name in seccomp.FLAGGED_TRANSFERS:
        assert answer(code, here, name, 3, 1, 1, 0, 0, 0) == ALLOWED
        assert all(answer(code, here, name, 3, 1, 1, 0, 0, flag) == errno.EOPNOTSUPP for flag in (1, 8, 0x80)), name
    assert all(answer(code, here, "madvise", 0, 4096, value) == errno.EINVAL for value in (20, 21))
    assert all(answer(code, here, "madvise", 0, 4096, value) == ALLOWED for value in (3, 4, 8, 14)), "as malloc does"


def test_locks_are_taken_in_word_only_and_never_seen(here: Machine, worker: bytes) -> None:
    agent = program(Strictness.PROGRAM, here, PID)
    assert answer(worker, here, "flock", 3, 2) == PRETENDED
    assert answer(agent, here, "flock", 3, 2) == ALLOWED
    for command in seccomp.LOCKING_COMMANDS.values():
        assert (answer(worker, here, "fcntl", 3, command), answer(agent, here, "fcntl", 3, command)) == (PRETENDED, 0)
    assert all(answer(worker, here, "fcntl", 3, value) == errno.EPERM for value in seccomp.READING_LOCKS.values())


def test_an_agent_is_told_of_no_file(here: Machine) -> None:
    agent = program(Strictness.PROGRAM, here, PID)
    assert answer(agent, here, "inotify_add_watch", 3) == errno.ENOSPC
    assert answer(agent, here, "fcntl", 3, seccomp.FILE_COMMANDS["F_NOTIFY"]) == errno.EPERM
    assert answer(agent, here, "fanotify_init") == errno.EPERM


def test_no_end_of_a_process_signals_another(here: Machine, worker: bytes) -> None:
    assert answer(worker, here, "prctl", 1, 9) == errno.EPERM, "PR_SET_PDEATHSIG"
    assert answer(worker, here, "prctl", 15) == ALLOWED, "PR_SET_NAME"
    fork, sibling = 0x1200000, 0x8000
    assert all(answer(worker, here, "clone", fork | signal) == ALLOWED for signal in (0, 17))
    assert all(answer(worker, here, "clone", fork | signal) == errno.EPERM for signal in (9, 18, 10, 19, 64))
    assert answer(worker, here, "clone", fork | 17 | sibling) == errno.EPERM, "CLONE_PARENT"


def test_no_work_goes_on_in_the_kernel(here: Machine, worker: bytes) -> None:
    assert answer(worker, here, "io_setup") == answer(worker, here, "io_uring_setup") == errno.ENOSYS


def test_the_second_filter_leaves_threads_and_takes_processes(here: Machine) -> None:
    code = seccomp.processes(here)
    assert answer(code, here, "clone", 0x3D0F00) == answer(code, here, "ioctl") == ALLOWED
    assert answer(code, here, "clone", 0x1200011) == answer(code, here, "clone", 0x4111) == errno.EPERM
    assert all(answer(code, here, name) == errno.EPERM for name in ("fork", "vfork") if name in here.numbers)


def test_the_second_filter_takes_other_programs_but_from_who_is_about_to_become_the_worker(here: Machine) -> None:
    for name in ("execve", "execveat"):
        assert answer(seccomp.processes(here), here, name) == errno.EPERM
        assert answer(seccomp.processes(here, programs=True), here, name) == ALLOWED


def test_compilers_and_agents_may_signal_what_they_start(here: Machine) -> None:
    code = program(Strictness.PROGRAM, here, 0)
    assert all(answer(code, here, name, 1) == ALLOWED for name in ("kill", "prlimit64", "setsid", "sched_setaffinity"))


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_numbers_are_those_of_the_kernels_headers(name: str, header: str) -> None:
    if not Path(header).is_file():
        pytest.skip(f"no {header} on this machine")
    found = dict(re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(header).read_text(), re.MULTILINE))
    known = {call: number for call, number in MACHINES[name].numbers.items() if call in found}
    assert len(known) > 60
    assert {call: int(found[call]) for call in known} == known


# What a process behind the filter alone does to its parent, which waits for a signal: no Landlock keeps them here.
_ALONE = """
import os, signal, subprocess, sys, threading
from arena.processes.sandbox import confinement
from arena.processes.sandbox.seccomp import Strictness
level = confinement.confine(confinement.Confinement(strictness=Strictness.WORKER))
assert "landlock" not in level
if "seccomp" not in level:
    sys.exit(77)
"""


def _alone(code: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-c", _ALONE + code], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("this kernel takes no filter")
    return done


def test_the_kernel_takes_the_filter_and_python_still_works() -> None:
    done = _alone("""
thread = threading.Thread(target=lambda: None)
thread.start(), thread.join()
assert subprocess.run(["true"]).returncode == 0
os.sched_setaffinity(0, os.sched_getaffinity(0))
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.raise_signal(signal.SIGUSR1)
try:
    os.kill(os.getppid(), 0)
except PermissionError:
    os.abort()
""")
    assert done.returncode == -6, done.stderr


def test_after_the_second_filter_only_threads_start() -> None:
    done = _alone("""
confinement.refuse_processes()
thread = threading.Thread(target=lambda: None)
thread.start(), thread.join()
for start in (os.fork, lambda: subprocess.run(["true"]), lambda: os.posix_spawn("/bin/true", ["true"], {})):
    try:
        start()
    except PermissionError:
        continue
    sys.exit("a process was started")
try:
    os.execv(sys.executable, [sys.executable, "-c", "raise SystemExit('another program')"])
except PermissionError:
    pass
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow(but=["timer_create"])
@pytest.mark.parametrize("name", sorted(signalling.WAYS))
def test_nobody_is_signalled_by_way_of_the_kernel(name: str) -> None:
    """Behind the filter alone, so that Landlock's scope of signals keeps none; and each way works without a filter."""
    assert signalling.tried(name, filtered=False), "no way at all: the test would hold nothing"
    assert not signalling.tried(name, filtered=True)
