"""A machine that refuses namespaces: `python -m tests.processes.sandbox.refusing COMMAND…` becomes the command."""

from __future__ import annotations

import ctypes
import os
import sys

from arena.processes.sandbox import seccomp
from arena.processes.sandbox.calls import machine

_NO_NEW_PRIVILEGES = 38


def refuse_namespaces() -> None:
    """Have `unshare` fail with EPERM in this process and all that it starts."""
    here = machine()
    assert here is not None
    refused = [seccomp._argument(0), *seccomp._refused_bits(seccomp._NAMESPACES)]
    lines = [
        seccomp._Line(seccomp._LOAD, 0, 0, seccomp._NUMBER),
        seccomp._Line(seccomp._JUMP_EQUAL, 0, len(refused), here.numbers["unshare"]),
        *refused,
        seccomp._PASS,
    ]
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    assert seccomp._load(b"".join(line.packed() for line in lines), here)


if __name__ == "__main__":
    refuse_namespaces()
    os.execv(sys.argv[1], sys.argv[1:])
