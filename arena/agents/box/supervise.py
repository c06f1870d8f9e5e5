"""The process that watches over an agent where there is no bubblewrap: `python -m arena.agents.box.supervise FD`.

It is ours and trusted. As a subreaper it inherits every daemon that the agent leaves, and ends them all when the
command ends. FD is a file with a JSON object, the fields of `Order`.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import signal
import sys
from dataclasses import asdict, dataclass
from types import FrameType
from typing import NoReturn

from arena.agents.box import processes
from arena.agents.inside.relay import bring_up_loopback
from arena.processes.process_table import descendants
from arena.processes.sandbox import Namespaces, confinement, enter, landlock, mounts, places
from arena.processes.sandbox.landlock import Allowed
from arena.processes.sandbox.seccomp import Strictness

_TERMINALS = ("/dev/tty", "/dev/ptmx", "/dev/pts")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SHARED_BYTES = 1 << 30


@dataclass(frozen=True)
class Order:
    """What the harness asks for. `relay` comes before the command where the box has a network of its own."""

    command: list[str]
    relay: list[str]
    environment: dict[str, str]
    proxy: dict[str, str]
    """environment variables that lead to the relay"""
    folder: str
    writable: list[str]
    readable: list[str]
    """beside the system's folders"""
    device: bool
    hide: list[str]
    file_bytes: int
    processes: int
    user: int
    """the uid to become; our own for none"""
    groups: list[int]
    """those it belongs to then"""
    report: int
    """descriptor for a line with the level in force, and for what goes wrong after it"""
    go: int
    """descriptor; the command begins when a byte comes"""

    def written(self) -> bytes:
        """As `main` reads it."""
        return json.dumps(asdict(self)).encode()


def main(arguments: list[str]) -> NoReturn:
    """Start the command, wait for it, end what it left, and end with its exit code."""
    with open(int(arguments[0]), "rb") as file:  # noqa: PTH123
        order = Order(**json.load(file))
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _end)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    child = os.fork()
    if child == 0:
        _become(order)
    os.close(order.report)
    os.close(order.go)
    status = _wait_for(child)
    _end_all()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _end_all() -> None:
    me = os.getpid()
    processes.kill_all(lambda: descendants(me) - {me})


def _end(number: int, _: FrameType | None) -> NoReturn:
    """The harness is gone: so is its agent."""
    _end_all()
    os._exit(128 + number)


def _wait_for(child: int) -> int:
    """Collect whatever ends, until the child does; its status."""
    while True:
        process, status = os.wait()
        if process == child:
            return status


def _become(order: Order) -> NoReturn:
    """Enter the sandbox and become the agent's command; what is wrong is reported and ends this process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.set_inheritable(order.report, False)
    try:
        level = enter(Namespaces(hide=tuple(order.hide)))
        if "mount" in level and mounts.read_only(order.writable, _SHARED_BYTES):
            level += "+read-only"
        confined = "network" in level and bring_up_loopback()
        _limit(order)
        level += _change_user(order.user, order.groups)
        level += _confine(order)
        os.chdir(order.folder)
        os.write(order.report, f"{level}\n".encode())
        os.read(order.go, 1)
        os.close(order.go)
        environment = {**order.environment, **(order.proxy if confined else {})}
        command = [*(order.relay if confined else []), *order.command]
        os.execvpe(command[0], command, environment)
    except BaseException as problem:
        os.write(order.report, f"{problem}".encode())
        os._exit(127)


def _confine(order: Order) -> str:
    """Apply the restrictions that need no namespace. The network is not among them: see `walled`."""
    files = landlock.without((*places.system(), *order.readable), order.hide)
    write = (*order.writable, *places.PLAIN_DEVICES, *_TERMINALS, *(places.devices() if order.device else ()))
    allowed = Allowed(files.read, write, files.listed)
    return confinement.confine(confinement.Confinement(strictness=Strictness.PROGRAM, files=allowed, network=True))


def _limit(order: Order) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (order.file_bytes, order.file_bytes))
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = order.processes if hard == resource.RLIM_INFINITY else min(order.processes, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _change_user(user: int, groups: list[int]) -> str:
    """Become another user for good, where asked to; all capabilities go with it."""
    if user == os.geteuid():
        return ""
    os.setgroups(groups)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    if os.geteuid() != user:
        raise OSError(errno.EPERM, "cannot become another user")
    # The kernel forgets this wish with the user.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return "+user"


if __name__ == "__main__":
    main(sys.argv[1:])
