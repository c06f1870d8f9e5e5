"""A round trip through a shared buffer, before the first candidate: does this machine share buffers as was chosen?"""

from __future__ import annotations

import secrets

from arena.errors import InfrastructureError
from arena.judge.workers.worker import CandidateFailed, Worker
from arena.platforms.base import Platform, SharedBuffer
from arena.processes.protocol import CopyHalf
from arena.results.messages import bare

_HALF_BYTES = 4096


class SharingFailed(InfrastructureError):
    """Buffers do not reach workers. A process that was started otherwise may share them."""


def check_sharing(device: Platform, worker: Worker, timeout_s: float) -> None:
    """Have a worker of Python copy within a buffer, and read it back. Raises `SharingFailed`."""
    try:
        buffer = device.allocate(2 * _HALF_BYTES)
    except RuntimeError as problem:
        raise SharingFailed(f"a buffer cannot be shared: {problem}") from None
    try:
        _exchange(device, worker, buffer, timeout_s)
    except CandidateFailed as failure:
        raise SharingFailed(f"a worker cannot use a shared buffer: {bare(failure.detail)}") from None
    finally:
        buffer.close()


def _exchange(device: Platform, worker: Worker, buffer: SharedBuffer, timeout_s: float) -> None:
    import torch

    written = torch.frombuffer(bytearray(secrets.token_bytes(_HALF_BYTES)), dtype=torch.uint8)
    buffer.tensor[:_HALF_BYTES].copy_(written)
    device.synchronize()
    worker.ask(CopyHalf(buffer.handle), timeout_s, [] if buffer.file is None else [buffer.file])
    wrong = int((buffer.tensor[_HALF_BYTES:].cpu() != written).sum())
    if wrong:
        raise SharingFailed(f"{wrong} of {_HALF_BYTES} bytes came back wrong from a buffer shared with a worker")
