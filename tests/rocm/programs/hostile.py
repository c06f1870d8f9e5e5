"""Buffers of a judge, and a process that does not keep to the rules: `python hostile.py neighbour|silent`.

For `test_hostile.py`, on the simulated machine. `neighbour`: a process that was given one buffer looks for the secret
of another one, in all that the runtime maps. `silent`: a process connects to the judge's socket and says nothing.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms import platform
from tests.rocm.platform import RocmSimPlatform

NAME = "rocm-sim"
BYTES = 300_000
SECRET = b"of no business of a worker's " * 64


def device() -> RocmSimPlatform:
    """Return the platform of this process."""
    found = platform(NAME)
    assert isinstance(found, RocmSimPlatform)
    return found


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def neighbour() -> None:
    """Share one of two buffers: first as the runtime places them, then as the platform does."""
    runtime = device().hip_runtime
    plain = [runtime.malloc(BYTES) for _ in range(2)]
    ctypes.memmove(plain[1], SECRET, len(SECRET))
    say(f"plain allocations: {looked(runtime.export(plain[0]))}")
    ours = [device().allocate(BYTES) for _ in range(2)]
    ctypes.memmove(ours[1].tensor.data_ptr(), SECRET, len(SECRET))
    say(f"buffers of the platform: {looked(ours[0].handle.ipc)}")


def looked(handle: str, limit_s: float = 60) -> str:
    """Return what another process found that was given a handle."""
    command = (sys.executable, "-P", __file__, "look", handle)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=limit_s)
    return done.stdout.strip().splitlines()[-1]


def look(handle: str) -> None:
    """Search all that is mapped where a shared buffer begins."""
    address = device().hip_runtime.open(handle)
    for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
        first, last = (int(text, 16) for text in line.split()[0].split("-"))
        if first <= address < last:
            seen = SECRET in ctypes.string_at(first, last - first)
            say(f"{'the secret' if seen else 'nothing'} in {last - first} mapped bytes")


def silent() -> None:
    """Connect to the runtime's socket and say nothing; then the judge shares a buffer, and a worker opens one."""
    first = device().allocate(BYTES)  # from here on the runtime listens
    names = re.findall(rf"@(hsa{os.getpid()}@*)$", Path("/proc/net/unix").read_text(encoding="utf-8"), re.M)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect("\0" + names[0].replace("@", "\0"))  # the file shows zero bytes so
        time.sleep(1)
        began = time.monotonic()
        try:
            device().allocate(BYTES)
            say("the judge shared a buffer")
        except InfrastructureError as problem:
            say(f"the judge gave up: {problem}")
        say(f"in time: {time.monotonic() - began < 40}")
        try:
            say(f"a worker meanwhile: {looked(first.handle.ipc, 10)}")
        except subprocess.TimeoutExpired:
            say("a worker meanwhile: waits")
    say(f"a worker afterwards: {looked(first.handle.ipc)}")


if __name__ == "__main__":
    if sys.argv[1] == "look":
        look(sys.argv[2])
    else:
        {"neighbour": neighbour, "silent": silent}[sys.argv[1]]()
