"""A network that a judge shares with its workers: empty, so that nothing else is reachable from it.

Buffers of some devices reach another process only over an abstract Unix socket, which ends at a network namespace. The
judge then starts through `python -m arena.sandbox.network COMMAND…`, and its workers stay in the namespace it enters.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from arena.errors import UsageError
from arena.sandbox import landlock
from arena.sandbox.namespaces import CLONE_NEWNET, SHARED_NETWORK, SHARED_SCOPE, unshare

SWITCH = "ARENA_NETWORK"
IN_FORCE = "ARENA_NETWORK_SHARED"
"""set for the judge and its fork servers: the part of the level that `share` returned"""
_NO_NEW_PRIVILEGES = 38


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


def starting(command: Sequence[str], *, shared: bool) -> list[str]:
    """Return the command line that starts `command`, where `shared` in a network that its workers stay in."""
    return [sys.executable, "-m", "arena.sandbox.network", *command] if shared else list(command)


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


def main(command: Sequence[str]) -> NoReturn:
    """Share the network, and become the command, which finds the part of the level in its environment."""
    os.execve(command[0], list(command), {**os.environ, IN_FORCE: share()})


if __name__ == "__main__":
    main(sys.argv[1:])
