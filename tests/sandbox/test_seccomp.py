"""Filters, run here by a small interpreter of classic BPF, for both machines; and one that the kernel runs."""

from __future__ import annotations

import errno
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from arena.sandbox import seccomp
from arena.sandbox.calls import MACHINES, Machine
from arena.sandbox.seccomp import Strictness, program

PID = 5000
ALLOWED = 0


def answer(code: bytes, here: Machine, call: str | int, *arguments: int, audit: int | None = None) -> int:
    """What the filter says to a call: 0, or the error."""
    number = here.numbers[call] if isinstance(call, str) else call
    six = [argument & (1 << 64) - 1 for argument in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("=IIQ6Q", number, here.audit if audit is None else audit, 0, *six)
    lines = list(struct.iter_unpack("=HBBI", code))
    at, loaded = 0, 0
    while True:
        kind, then, otherwise, value = lines[at]
        if kind == 0x06:
            return value & 0xFFFF if value >> 16 == 5 else ALLOWED
        if kind == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
            at += 1
            continue
        holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[kind]
        at += 1 + (then if holds else otherwise)


@pytest.fixture(params=sorted(MACHINES))
def here(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


@pytest.fixture
def host(here: Machine) -> bytes:
    return program(Strictness.HOST, here, PID)


def test_what_no_candidate_needs_is_refused_to_all(here: Machine) -> None:
    for strictness in Strictness:
        code = program(strictness, here, PID)
        for name in seccomp.REFUSED:
            if name in here.numbers:
                assert answer(code, here, name) == errno.EPERM, name
        assert all(answer(code, here, name) == errno.ENOSYS for name in seccomp.ABSENT)


def test_other_machines_and_conventions_are_refused(here: Machine, host: bytes) -> None:
    assert answer(host, here, "ioctl", audit=0x40000003) == errno.EPERM
    if here.foreign_from:
        assert answer(host, here, here.foreign_from + here.numbers["ptrace"]) == errno.EPERM


def test_threads_and_forks_are_allowed_and_namespaces_are_not(here: Machine, host: bytes) -> None:
    thread, fork = 0x3D0F00, 0x1200011
    assert answer(host, here, "clone", thread) == answer(host, here, "clone", fork) == ALLOWED
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(host, here, "clone", fork | flag) == errno.EPERM
        assert answer(host, here, "unshare", flag) == errno.EPERM
    assert answer(host, here, "unshare", 0x80) == errno.EPERM


def test_a_terminal_cannot_be_typed_into(here: Machine, host: bytes) -> None:
    assert answer(host, here, "ioctl", 0, 0x5412) == errno.EPERM
    assert answer(host, here, "ioctl", 0, 0x5412 | 1 << 40) == errno.EPERM, "the kernel drops the upper half"
    assert answer(host, here, "ioctl", 0, 0xC0304627) == ALLOWED, "a call to a GPU's driver"


@pytest.mark.parametrize("name", ["kill", "tkill", "tgkill", "sched_setaffinity", "sched_setscheduler", "pidfd_open"])
def test_older_processes_cannot_be_named(here: Machine, host: bytes, name: str) -> None:
    assert all(answer(host, here, name, pid) == ALLOWED for pid in (0, PID, PID + 1, 1 << 22))
    assert all(answer(host, here, name, pid) == errno.EPERM for pid in (1, PID - 1))


def test_groups_that_can_be_signalled(here: Machine, host: bytes) -> None:
    assert answer(host, here, "kill", -PID) == answer(host, here, "kill", -PID - 7) == ALLOWED
    assert answer(host, here, "kill", -1) == answer(host, here, "kill", 1 - PID) == errno.EPERM


def test_priorities_and_limits(here: Machine, host: bytes) -> None:
    assert answer(host, here, "setpriority", 0, 0) == answer(host, here, "setpriority", 0, PID + 3) == ALLOWED
    assert answer(host, here, "setpriority", 0, PID - 1) == errno.EPERM
    assert answer(host, here, "setpriority", 2, 0) == answer(host, here, "ioprio_set", 3, 0) == errno.EPERM
    assert answer(host, here, "prlimit64", 0) == answer(host, here, "prlimit64", PID) == ALLOWED
    assert answer(host, here, "prlimit64", PID + 1) == answer(host, here, "prlimit64", PID - 1) == errno.EPERM


def test_where_landlock_keeps_signals_the_filter_does_not(here: Machine) -> None:
    code = program(Strictness.HOST, here, PID, signals_scoped=True)
    assert answer(code, here, "kill", 1) == answer(code, here, "pidfd_send_signal", 3) == ALLOWED
    assert answer(code, here, "sched_setaffinity", 1) == errno.EPERM


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


def test_the_kernel_takes_the_filter_and_python_still_works() -> None:
    code = """
import os, signal, subprocess, sys, threading
from arena.sandbox import seal
from arena.sandbox.seccomp import Strictness
level = seal.close(seal.Seal(strictness=Strictness.HOST))
if "seccomp" not in level:
    sys.exit(77)
if os.getpid() < os.getppid():
    sys.exit(78)
thread = threading.Thread(target=lambda: None)
thread.start(), thread.join()
child = subprocess.Popen(["sleep", "60"])
child.kill()
assert child.wait() == -signal.SIGKILL
assert subprocess.run([sys.executable, "-c", "import os; os.abort()"]).returncode == -signal.SIGABRT
os.sched_setaffinity(0, os.sched_getaffinity(0))
try:
    os.kill(os.getppid(), 0)
except PermissionError:
    os.abort()
"""
    # A parent of its own: ids may have wrapped around since pytest began, and the filter goes by which is older.
    starts = "import subprocess, sys; print(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", starts, code], capture_output=True, text=True, timeout=60)
        if done.stdout != "78\n":
            break
    if done.stdout == "77\n":
        pytest.skip("this kernel takes no filter")
    assert done.stdout == "-6\n", done.stderr
