"""A program under a vendor's profiler, `python -m arena.worker.profiled_run FILE`: loads it, calls it twice, and ends.

A profiler starts the process that it profiles, so none of the fork server's workers will do. This one reads from FILE
what a worker would be told, enters a worker's sandbox, and fills a buffer of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import cast

import msgspec

from arena.platforms.base import Platform, SharedBuffer
from arena.processes.protocol import Handle, ProfiledRun, Spawn
from arena.processes.sandbox import Namespaces, confinement, enter, network, places
from arena.processes.sandbox.seccomp import Strictness
from arena.worker.binding import Binding
from arena.worker.fork_server import ready_device
from arena.worker.loaders import load


class _Own:
    """Stands in for a platform where a binding opens its buffer: it is the process's own."""

    def __init__(self, buffer: SharedBuffer) -> None:
        self._buffer = buffer

    def open(self, handle: Handle, file: int | None) -> SharedBuffer:
        """Return the buffer, whatever the handle."""
        del handle, file
        return self._buffer


def main(file: Path) -> None:
    """Run what the file says. The profiler's output is the result; a failure ends in a traceback."""
    import torch

    asked = msgspec.json.decode(file.read_bytes(), type=ProfiledRun)
    data = torch.frombuffer(bytearray(Path(asked.data).read_bytes()), dtype=torch.uint8)
    os.environ.update(HOME=asked.spawn.folder, TMPDIR=asked.spawn.folder, TRITON_CACHE_DIR=asked.spawn.cache)
    device = ready_device(asked.platform)
    _enter_sandbox(asked.spawn)
    buffer = device.allocate(data.numel())
    buffer.tensor.copy_(data)
    entry = load(asked.load, device.torch_device)
    binding = Binding(asked.bind, cast(Platform, _Own(buffer)), None)
    entry.bind(binding)
    binding.resolve_addresses()
    for index, counts in ((0, False), (1, True)):
        if counts and device.name == "cuda":
            torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
        entry.call(index)
        device.synchronize()
    if device.name == "cuda":
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


def _enter_sandbox(message: Spawn) -> None:
    """A worker's, but that TCP stays: Nsight Compute speaks with its target over the loopback of their network."""
    own = (message.folder, message.cache)
    level = enter(Namespaces(hide=message.hide, own=own, network=os.environ.get(network.IN_FORCE, "")))
    files = places.for_python_worker(own, message.show, message.hide, level)
    confinement.confine(confinement.Confinement(strictness=Strictness.WORKER, files=files, level=level, network=True))
    os.chdir(message.folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
