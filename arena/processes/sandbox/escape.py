"""Trying to get out: what a worker could do here, tried by a process in a worker's sandbox.

Every attempt is made for real, at a file, a listener and a process of our own that stand outside.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from arena.processes.sandbox import Namespaces, confinement, enter, network, places
from arena.processes.sandbox.calls import machine
from arena.processes.sandbox.mounts import SHARED_MEMORY
from arena.processes.sandbox.seccomp import Strictness
from arena.processes.scratch import scratch

_PTRACE_SEIZE = 0x4206
_NEW_USER = 0x10000000
_CLONE_PARENT = 0x8000
_CONNECT_S = 1.0


@dataclass(frozen=True)
class Attempt:
    """One try. `held`: it failed, as it should; `how`: the error that it met, or what it got."""

    what: str
    held: bool
    how: str


@dataclass(frozen=True)
class Escape:
    """All tries, and the level behind which they were made."""

    level: str
    attempts: tuple[Attempt, ...]

    @property
    def open(self) -> tuple[Attempt, ...]:
        """Those that got through."""
        return tuple(attempt for attempt in self.attempts if not attempt.held)


@dataclass(frozen=True)
class _Outside:
    """Targets outside. `secret` lies in a folder that is hidden, `neighbour` in one that is only not shown."""

    own: str
    secret: Path
    neighbour: Path
    port: int
    """of TCP, and of UDP too"""
    name: str
    """of a listening abstract Unix socket"""
    process: int
    address: int
    """of a few bytes in that process"""
    shared: int
    """the file system that is this machine's /dev/shm"""


def attempt_escape(*, shared: bool = False) -> Escape:
    """Fork a process, put it in a worker's sandbox, and have it try.

    Args:
        shared: whether in that of a worker which shares the judge's network (`network.py`).
    """
    with scratch("escape") as name, socket.create_server(("127.0.0.1", 0)) as listener:
        folders = [Path(name, part) for part in ("own", "secret", "neighbour")]
        for folder in folders:
            folder.mkdir()
            (folder / "file").write_text("secret", encoding="ascii")
        own, secret, neighbour = folders
        port, abstract = listener.getsockname()[1], f"\0arena-escape-{os.getpid()}"
        bytes_in_both = ctypes.create_string_buffer(b"secret")
        victim = _bystander()
        try:
            address, device = ctypes.addressof(bytes_in_both), Path(SHARED_MEMORY).stat().st_dev
            with _listening(port, abstract):
                files = (secret / "file", neighbour / "file")
                return _asked(_Outside(str(own), *files, port, abstract, victim, address, device), shared)
        finally:
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)


@contextmanager
def _listening(port: int, name: str) -> Iterator[None]:
    """On UDP, and on an abstract Unix socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as by_port, socket.socket(socket.AF_UNIX) as by_name:
        by_port.bind(("127.0.0.1", port))
        by_name.bind(name)
        by_name.listen()
        yield


def _bystander() -> int:
    """A process that waits, to be traced and signalled: nobody shall be hit who has work to do."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    return pid


def _asked(outside: _Outside, shared: bool) -> Escape:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _inside(outside, write_end, shared)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    if not said:
        return Escape("", (Attempt("enter the sandbox", False, "the process behind them ended without an answer"),))
    level, results = json.loads(said)
    return Escape(level, tuple(Attempt(*result) for result in results))


def _inside(outside: _Outside, answer: int, shared: bool) -> NoReturn:
    try:
        hidden = (str(outside.secret.parent),)
        level = enter(Namespaces(hide=hidden, own=(outside.own,), network=network.share() if shared else ""))
        files = places.for_python_worker((outside.own,), (), hidden, level)
        level += confinement.confine(confinement.Confinement(strictness=Strictness.WORKER, files=files, level=level))
        results = [(what, *_try(attempt)) for what, attempt in _attempts(outside).items()]
        os.write(answer, json.dumps([level, results]).encode())
    finally:
        os._exit(0)


def _try(attempt: Callable[[], object]) -> tuple[bool, str]:
    try:
        got = attempt()
    except OSError as problem:
        return True, problem.strerror or type(problem).__name__
    return False, f"got {got}"


def _attempts(outside: _Outside) -> Mapping[str, Callable[[], object]]:
    them = outside.process
    everyone = f"/proc/{them}"
    return {
        "read a hidden file": outside.secret.read_text,
        "read a file that it was not shown": outside.neighbour.read_text,
        "read it through another process": lambda: Path(f"{everyone}/root{outside.neighbour}").read_text(
            encoding="utf-8"
        ),
        "read another process's environment": lambda: Path(f"{everyone}/environ").read_bytes()[:0],
        "write outside its folders": lambda: tempfile.mkdtemp(dir=outside.neighbour.parent),
        "connect to this machine": lambda: socket.create_connection(("127.0.0.1", outside.port), _CONNECT_S).close(),
        "send to this machine": lambda: _send(outside.port),
        "connect to an abstract Unix socket": lambda: _connect(outside.name),
        "open a socket to a virtual machine's host": lambda: socket.socket(socket.AF_VSOCK).close(),
        "trace another process": lambda: _call("ptrace", _PTRACE_SEIZE, them, 0, 0),
        "read another process's memory": lambda: _read_memory(them, outside.address),
        "signal another process": lambda: os.kill(them, signal.SIGCONT),
        "renice another process": lambda: os.setpriority(os.PRIO_PROCESS, them, 1),
        "move another process to a processor": lambda: _pin(them),
        "limit another process": lambda: resource.prlimit(them, resource.RLIMIT_CORE, (0, 0)),
        "mount a file system": lambda: _call("mount", b"none", outside.own.encode(), b"tmpfs", 0, None),
        "take a mount away": lambda: _call("umount2", str(outside.secret.parent).encode(), 2),
        "enter a new user namespace": lambda: _call("unshare", _NEW_USER),
        "leave its process group": os.setsid,
        "start a process beside itself": _start_a_sibling,
        "have the kernel signal another process": lambda: _own_a_socket(them),
        "set a timer that signals": lambda: _call("timer_create", 1, None, ctypes.byref(ctypes.c_int())),
        "leave a System V segment": _leave_a_segment,
        "leave a message queue": _leave_a_queue,
        "leave a file in shared memory": lambda: _leave_a_file(outside.shared),
        "lock a file away that it was not shown": lambda: outside.neighbour.chmod(0o600),
        "mark a file that it was not shown": lambda: os.utime(outside.neighbour, ns=(1, 1)),
        "make a device file": lambda: os.mknod(f"{outside.own}/disk", 0o060600, os.makedev(254, 0)),
    }


def _send(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"secret", ("127.0.0.1", port))


def _connect(name: str) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(name)


def _pin(process: int) -> None:
    """A filter may say that it was done, and not do it."""
    before = os.sched_getaffinity(process)
    os.sched_setaffinity(process, {min(before)})
    if os.sched_getaffinity(process) == before:
        raise PermissionError(errno.EPERM, "it stayed where it was")


def _start_a_sibling() -> None:
    if _call("clone", _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)


def _own_a_socket(process: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fcntl.fcntl(ours, fcntl.F_SETOWN, process)


def _leave_a_segment() -> None:
    _call("shmctl", _call("shmget", 0, 1, 0o600), 0, None)


def _leave_a_queue() -> None:
    name = f"arena-{os.getpid()}".encode()
    os.close(_call("mq_open", name, os.O_CREAT | os.O_RDWR, 0o600, None))
    _call("mq_unlink", name)


def _leave_a_file(shared: int) -> None:
    with tempfile.TemporaryFile(dir=SHARED_MEMORY) as file:
        if os.fstat(file.fileno()).st_dev != shared:
            raise OSError(errno.EXDEV, "it has one of its own")


class _Span(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("address", ctypes.c_void_p), ("num_bytes", ctypes.c_size_t))


def _read_memory(process: int, address: int) -> bytes:
    here = ctypes.create_string_buffer(6)
    ours, theirs = _Span(ctypes.addressof(here), 6), _Span(address, 6)
    _call("process_vm_readv", process, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    return here.raw


def _call(name: str, *arguments: object) -> int:
    here = machine()
    if here is None:
        raise OSError(0, f"the number of {name} is not known on this machine")
    done = int(ctypes.CDLL(None, use_errno=True).syscall(here.numbers[name], *arguments))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
