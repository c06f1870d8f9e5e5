"""Ways in which one process has the kernel signal another, each tried at a process made to be hit."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from arena.processes.sandbox import confinement
from arena.processes.sandbox.calls import machine
from arena.processes.sandbox.seccomp import Strictness

_F_SETSIG, _F_SETOWN_EX, _FIOASYNC, _FIOSETOWN, _SIOCSPGRP = 10, 15, 0x5452, 0x8901, 0x8902
_TIOCSIG, _CLONE_PARENT, _SIGEV_SIGNAL = 0x40045436, 0x8000, 0
_WAITS_S = 0.5


def tried(way: str, *, filtered: bool) -> bool:
    """Whether a process that goes this way has hit another, which is its parent."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.processes.sandbox.signalling", way, str(int(filtered))],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[3],
        check=True,
    )
    return done.stdout.strip() == "hit"


_report, _told = os.pipe()


def _hit() -> None:
    os.write(_told, b"hit")


def _hit_and_exit() -> None:
    _hit()
    os._exit(0)


def _call(name: str, *arguments: object) -> int:
    here = machine()
    assert here is not None
    done = int(ctypes.CDLL(None, use_errno=True).syscall(here.numbers[name], *arguments))
    if done < 0:
        raise OSError(ctypes.get_errno(), name)
    return done


def _readable(victim: int, own: Callable[[int], object], *, async_by_ioctl: bool = False) -> None:
    """A socket that has an owner, and becomes readable."""
    ours, theirs = socket.socketpair()
    fcntl.fcntl(ours, _F_SETSIG, signal.SIGUSR1)
    own(ours.fileno())
    if async_by_ioctl:
        fcntl.ioctl(ours, _FIOASYNC, struct.pack("i", 1))
    else:
        fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    theirs.send(b"x")


def _lease(victim: int, folder: str) -> None:
    path = Path(folder, "leased")
    path.write_text("x")
    held = os.open(path, os.O_RDONLY)
    fcntl.fcntl(held, _F_SETSIG, signal.SIGUSR1)
    fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    fcntl.fcntl(held, fcntl.F_SETOWN, victim)
    os.open(path, os.O_WRONLY | os.O_NONBLOCK)


def _notify(victim: int, folder: str) -> None:
    held = os.open(folder, os.O_RDONLY)
    fcntl.fcntl(held, _F_SETSIG, signal.SIGUSR1)
    fcntl.fcntl(held, fcntl.F_SETOWN, victim)
    fcntl.fcntl(held, fcntl.F_NOTIFY, fcntl.DN_CREATE | fcntl.DN_MULTISHOT)
    Path(folder, "new").write_text("x")


def _at_the_parents_end(victim: int) -> None:
    """The worst a child can do to itself by its parent's end: the hit is the child's own."""
    middle = os.fork()
    if middle == 0:
        child = os.fork()
        if child:
            time.sleep(0.1)
            os._exit(0)
        _call("prctl", 1, signal.SIGUSR1, 0, 0, 0)
        signal.signal(signal.SIGUSR1, lambda *_: _hit_and_exit())
        time.sleep(_WAITS_S)
        os._exit(0)
    os.waitpid(middle, 0)
    time.sleep(0.2)


def _exit_signal(victim: int, flags: int = 0) -> None:
    """A child whose end sends what clone was told to."""
    if _call("clone", flags | signal.SIGUSR1, 0, 0, 0, 0) == 0:
        os._exit(0)


def _sibling(victim: int) -> None:
    """A child of the parent's, whose end is told to that."""
    if _call("clone", _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)


class _Event(ctypes.Structure):
    """`struct sigevent`."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )


def _timer(victim: int) -> None:
    """The hit is its own: a timer of a stopped process has it go on."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCONT, lambda *_: _hit_and_exit())
        number = ctypes.c_int()
        event = _Event(0, signal.SIGCONT, _SIGEV_SIGNAL)
        _call("timer_create", 1, ctypes.byref(event), ctypes.byref(number))
        ctypes.CDLL(None).syscall(
            {"x86_64": 223, "aarch64": 110}[os.uname().machine],
            number,
            0,
            ctypes.byref((ctypes.c_long * 4)(0, 0, 0, 200_000_000)),
            None,
        )
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    time.sleep(_WAITS_S)


CONTINUED_BY_A_TIMER = """
import ctypes, os, signal, time
from arena.processes.sandbox.calls import machine
from tests.processes.sandbox.signalling import _Event, _call
signal.signal(signal.SIGCONT, lambda *_: sum(range(50_000)))
for milliseconds in (20, 30, 50, 70, 90):
    number, event = ctypes.c_int(), _Event(0, signal.SIGCONT, 0)
    _call("timer_create", 1, ctypes.byref(event), ctypes.byref(number))
    every = (ctypes.c_long * 4)(0, milliseconds * 1_000_000, 0, milliseconds * 1_000_000)
    ctypes.CDLL(None).syscall({"x86_64": 223, "aarch64": 110}[os.uname().machine], number, 0, ctypes.byref(every), None)
print(flush=True)
while True:
    time.sleep(60)
"""
"""Woken many times a second, also where it is stopped by a signal. A stop ends the timers whose signals wait."""


def _queue(victim: int) -> None:
    """A message queue that tells of its first message; the hit is its own."""
    libc = ctypes.CDLL("librt.so.1", use_errno=True)
    name = f"/arena-test-{os.getpid()}".encode()
    signal.signal(signal.SIGUSR2, lambda *_: _hit())
    queue = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    libc.mq_unlink(name)
    event = _Event(0, signal.SIGUSR2, _SIGEV_SIGNAL)
    _call("mq_notify", queue, ctypes.byref(event))
    libc.mq_send(queue, b"x", 1, 0)
    time.sleep(0.1)


def _by_descriptor(victim: int) -> None:
    _call("pidfd_send_signal", _call("pidfd_open", victim, 0), signal.SIGUSR1, 0, 0)


def _queued(victim: int) -> None:
    information = (ctypes.c_int * 32)(signal.SIGUSR1, 0, -1)
    _call("rt_sigqueueinfo", victim, signal.SIGUSR1, ctypes.byref(information))


def _queued_to_a_thread(victim: int) -> None:
    information = (ctypes.c_int * 32)(signal.SIGUSR1, 0, -1)
    _call("rt_tgsigqueueinfo", victim, victim, signal.SIGUSR1, ctypes.byref(information))


def _terminal(victim: int) -> None:
    """A signal to whoever is in front of a terminal: here a child in a session of its own."""
    child, master = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, lambda *_: _hit_and_exit())
        time.sleep(_WAITS_S)
        os._exit(0)
    time.sleep(0.2)
    fcntl.ioctl(master, _TIOCSIG, signal.SIGINT)
    os.waitpid(child, 0)


WAYS: dict[str, Callable[[int, str], object]] = {
    "kill": lambda victim, _: os.kill(victim, signal.SIGUSR1),
    "kill of everybody in a group": lambda victim, _: os.killpg(os.getpgid(victim), signal.SIGUSR1),
    "tkill": lambda victim, _: _call("tkill", victim, signal.SIGUSR1),
    "tgkill": lambda victim, _: _call("tgkill", victim, victim, signal.SIGUSR1),
    "rt_sigqueueinfo": lambda victim, _: _queued(victim),
    "rt_tgsigqueueinfo": lambda victim, _: _queued_to_a_thread(victim),
    "pidfd_send_signal": lambda victim, _: _by_descriptor(victim),
    "fcntl F_SETOWN": lambda victim, _: _readable(victim, lambda file: fcntl.fcntl(file, fcntl.F_SETOWN, victim)),
    "fcntl F_SETOWN_EX": lambda victim, _: _readable(
        victim, lambda file: fcntl.fcntl(file, _F_SETOWN_EX, struct.pack("ii", 1, victim))
    ),
    "ioctl FIOSETOWN": lambda victim, _: _readable(
        victim, lambda file: fcntl.ioctl(file, _FIOSETOWN, struct.pack("i", victim))
    ),
    "ioctl SIOCSPGRP and FIOASYNC": lambda victim, _: _readable(
        victim, lambda file: fcntl.ioctl(file, _SIOCSPGRP, struct.pack("i", victim)), async_by_ioctl=True
    ),
    "fcntl F_SETLEASE": _lease,
    "fcntl F_NOTIFY": _notify,
    "prctl PR_SET_PDEATHSIG": lambda victim, _: _at_the_parents_end(victim),
    "clone with another signal": lambda victim, _: _exit_signal(victim, _CLONE_PARENT),
    "clone with CLONE_PARENT": lambda victim, _: _sibling(victim),
    "timer_create": lambda victim, _: _timer(victim),
    "mq_notify": lambda victim, _: _queue(victim),
    "ioctl TIOCSIG": lambda victim, _: _terminal(victim),
}


def _main(way: str, filtered: bool) -> None:
    os.setsid()
    victim = os.getpid()
    signal.signal(signal.SIGUSR1, lambda *_: _hit() if os.getpid() == victim else None)
    attacker = os.fork()
    if attacker == 0:
        try:
            if filtered:
                assert "+seccomp" in confinement.confine(confinement.Confinement(strictness=Strictness.WORKER))
            with tempfile.TemporaryDirectory() as folder, suppress(OSError):
                WAYS[way](victim, folder)
        finally:
            os._exit(0)
    os.waitpid(attacker, 0)
    time.sleep(0.05)
    os.close(_told)
    with suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
        os.write(1, b"hit")  # a child that it did not start
        os._exit(0)
    os.set_blocking(_report, False)
    with suppress(BlockingIOError):
        os.write(1, os.read(_report, 3))
    os._exit(0)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2] == "1")
