"""Answers to what host code asks of its device, for the CPU platform's: properties, streams, Triton's driver."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

from arena.platforms.cpu.triton import device_memory

_PROCESSORS = 3
"""few, so that a grid of so many programs has several tiles for each"""
_SHARED_BYTES = 64 << 10
_PROPERTIES = {
    "name": "CPU emulation",
    "major": 8,
    "minor": 0,
    "total_memory": 16 << 30,
    "multi_processor_count": _PROCESSORS,
    "warp_size": 32,
    "max_threads_per_multi_processor": 2048,
    "regs_per_multiprocessor": 64 << 10,
    "shared_memory_per_block": _SHARED_BYTES,
    "shared_memory_per_block_optin": _SHARED_BYTES,
    "shared_memory_per_multiprocessor": _SHARED_BYTES,
    "L2_cache_size": 4 << 20,
}
_OF_TRITON = {
    "max_shared_mem": _SHARED_BYTES,
    "max_num_regs": 64 << 10,
    "multiprocessor_count": _PROCESSORS,
    "warpSize": 32,
}


class _EmulatedStream:
    """A stream on which everything is done at once."""

    cuda_stream = 0

    def __init__(self, *_: object, **__: object) -> None: ...

    def wait_stream(self, stream: object) -> None:
        """There is nothing to wait for."""

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def query(self) -> bool:
        """Return whether all is done."""
        return True


class _EmulatedDriver:
    """The parts of a Triton driver that host code asks."""

    utils = SimpleNamespace(get_device_properties=lambda device: dict(_OF_TRITON))

    def get_current_device(self) -> int:
        """There is one."""
        return 0

    def get_current_stream(self, device: object = None) -> int:
        """Return the default stream."""
        return 0

    def get_current_target(self) -> Any:
        """Return a target that has tensor cores and 32 lanes."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 80, 32)

    def get_active_torch_device(self) -> Any:
        """Return PyTorch's word for where tensors are."""
        import torch

        return torch.device("cpu")


def answer_queries() -> None:
    """Have PyTorch and Triton answer for the emulated device; `torch.cuda.is_available` stays False."""
    import torch
    import triton

    answers: dict[str, Any] = {
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "set_device": lambda device: None,
        "get_device_properties": lambda device=None: SimpleNamespace(**_PROPERTIES),
        "get_device_capability": lambda device=None: (_PROPERTIES["major"], _PROPERTIES["minor"]),
        "get_device_name": lambda device=None: _PROPERTIES["name"],
        "synchronize": lambda device=None: None,
        "is_current_stream_capturing": lambda: False,
        "current_stream": _EmulatedStream,
        "default_stream": _EmulatedStream,
        "Stream": _EmulatedStream,
        "stream": _entered,
        "device": _entered,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch.Tensor.is_cuda = property(_is_on_device)  # type: ignore[assignment]
    triton.runtime.driver.set_active(_EmulatedDriver())


def _entered(what: object) -> AbstractContextManager[object]:
    return nullcontext(what)


def _is_on_device(tensor: Any) -> bool:
    return device_memory.find(tensor.data_ptr()) is not None
