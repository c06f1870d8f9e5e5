"""A network that a judge shares with its workers: empty, so that nothing else is reachable from it.

Buffers of some devices reach another process only over an abstract Unix socket, which ends at a network namespace. The
judge then starts through this module (`network COMMAND…`), and its workers stay in the namespace it enters.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from arena.errors import UsageError
from arena.processes.python_child import python_module
from arena.processes.sandbox import landlock
from arena.processes.sandbox.namespaces import CLONE_NEWNET, SHARED_NETWORK, SHARED_SCOPE, unshare

SWITCH = "ARENA_NETWORK"
IN_FORCE = "ARENA_NETWORK_SHARED"
"""set for the judge and its fork servers: the part of the level that `share` returned"""
_NO_NEW_PRIVILEGES = 38
_LOOPBACK = "--loopback"
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1


def wanted(needed: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether judge and workers shall share a network.

    Args:
        needed: whether the device can share buffers in no other way.
        environment: where `ARENA_NETWORK` may say `own` or `shared` instead.

    Raises:
        UsageError: it has another value.
    """
    said = environment.get(SWITCH, "")
    if said not in ("", "own", "shared"):
        raise UsageError(f"{SWITCH}={said}: it can be `own` or `shared`; without it the device decides")
    return said == "shared" if said else needed


def starting(command: Sequence[str], *, shared: bool, loopback: bool = False) -> list[str]:
    """Return the command line that starts `command`, where `shared` in a network that its workers stay in.

    With `loopback` they may also speak to each other over 127.0.0.1, as programs do that know nothing of all this.
    """
    own = python_module("arena.processes.sandbox.network", *([_LOOPBACK] if loopback else []))
    return [*own, *command] if shared else list(command)


def share() -> str:
    """Leave this machine's network and abstract Unix sockets, with all processes that are started from here on.

    An ordinary user can do so only in a process with one thread.

    Returns:
        The part of the level: `shared-network`; `shared-scope` where namespaces are refused and Landlock has version 6;
        else nothing, and nothing was left.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if unshare(libc, CLONE_NEWNET):
        return SHARED_NETWORK
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return SHARED_SCOPE if landlock.scope_abstract_sockets() else ""


def bring_up_loopback() -> None:
    """Switch the loopback interface of this network namespace on (netdevice(7)). Raises `OSError` where refused."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def main(command: Sequence[str]) -> NoReturn:
    """Share the network, and become the command, which finds the part of the level in its environment."""
    level, loopback = share(), command[0] == _LOOPBACK
    if loopback and level == SHARED_NETWORK:
        bring_up_loopback()
    command = command[1:] if loopback else command
    os.execve(command[0], list(command), {**os.environ, IN_FORCE: level})


if __name__ == "__main__":
    main(sys.argv[1:])
