"""Answers to what host code asks of its device, for the CPU platform's: properties, streams, Triton's driver."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

from arena.platforms.cpu.triton import device_memory

DEVICE = "cuda:0"
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

        return torch.device(DEVICE)


def answer_queries() -> None:
    """Have PyTorch and Triton answer for the emulated device as for a GPU."""
    import torch
    import triton

    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_lazy_init": lambda: None,
        "empty_cache": lambda: None,
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
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, _nothing)
    torch.Tensor.is_cuda = property(_is_on_device)  # type: ignore[assignment]
    torch.Tensor.device = property(_device_of(torch.Tensor.device))  # type: ignore[assignment]
    torch.Tensor.cuda = _moved(torch.Tensor.cuda)  # type: ignore[method-assign]
    torch.Tensor.to = _moved(torch.Tensor.to)  # type: ignore[method-assign]
    triton.runtime.driver.set_active(_EmulatedDriver())


def _entered(what: object) -> AbstractContextManager[object]:
    return nullcontext(what)


def _is_on_device(tensor: Any) -> bool:
    return device_memory.find(tensor.data_ptr()) is not None


def _nothing(*_: object, **__: object) -> int:
    return 0


def _device_of(own: Any) -> Any:
    """Return the getter of a tensor's device, which is `DEVICE` for those in device memory."""
    import torch

    emulated = torch.device(DEVICE)

    def device(tensor: Any) -> Any:
        return emulated if _is_on_device(tensor) else own.__get__(tensor)

    return device


def _moved(original: Any) -> Any:
    """Return `Tensor.to` or `Tensor.cuda`, by which a tensor that is in device memory already stays where it is."""
    import torch

    def real(value: object) -> object:
        named = isinstance(value, torch.device | str) and torch.device(value).type == "cuda"
        return torch.device("cpu") if named else value

    def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_on_device(tensor):
            return original(tensor, *args, **kwargs)
        if original.__name__ == "cuda":
            return tensor
        return original(tensor, *map(real, args), **{name: real(value) for name, value in kwargs.items()})

    return move
