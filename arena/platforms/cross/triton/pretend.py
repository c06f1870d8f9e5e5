"""PyTorch that seems to have a GPU: tensors lie in host memory and say they are on `cuda:0`, allocations included.

A candidate's Python code decides what it launches from devices, properties and shapes. It should decide as it would on
the target; what it computes on tensors by itself is computed here, on the CPU.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from arena.platforms.cross.triton.driver import capability
from arena.platforms.toolchains.targets import TARGETS

Hook = Callable[..., bool | None]


def build_each_once() -> None:
    """From now on, and in this whole process, a launch whose signature has been built is passed over."""
    seen: set[object] = set()

    def passed_over(*, fn: Any, compile: Mapping[str, Any], is_manual_warmup: bool, **_: object) -> bool | None:
        """Triton's question before it compiles: True leaves the launch out."""
        if is_manual_warmup:
            return None  # whoever asks for the kernel itself must get it
        signature = (fn.name, signature_of(fn.jit_function, compile))
        if signature in seen:
            return True
        seen.add(signature)
        return None

    _install(passed_over)


def signature_of(kernel: Any, compile: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Each argument and what is kept of it: a type, `None`, or the value of a flag; nothing of a constant integer.

    `kernel` is a `JITFunction`, `compile` what Triton tells its hooks. An integer that Triton takes for a constant,
    since it is 1, is one of the type `i32`.
    """
    names = [parameter.name for parameter in kernel.params]
    declared = {parameter.name for parameter in kernel.params if parameter.is_constexpr}
    constants = {_argument(place, names): value for place, value in compile["constants"].items()}
    kept = []
    for name, kind in compile["signature"].items():
        value = constants.get(name)
        if name not in constants:
            kept.append((name, str(kind)))
        elif type(value) is not int:
            kept.append((name, str(value)))
        elif name not in declared:
            kept.append((name, "i32"))
    return tuple(kept)


def _argument(place: Any, names: list[str]) -> str:
    """The name behind a key of `constants`: by version of Triton a path, a number or a name."""
    first = place[0] if isinstance(place, tuple) else place
    return names[first] if isinstance(first, int) else str(first)


def _install(hook: Hook) -> None:
    from triton import knobs

    knobs.runtime.jit_cache_hook = hook


_DEVICE = torch.device("cuda", 0)
_MEMORY_BYTES = 64 << 30
_WORDS = ("cuda", "hip")
_DEVICE_OF, _IS_CUDA = (inspect.getattr_static(torch.Tensor, name).__get__ for name in ("device", "is_cuda"))


class PretendDevice(TorchFunctionMode):
    """While active, PyTorch functions run on the CPU and answer as if they had run on the GPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function == _DEVICE_OF:
            return _DEVICE
        if function == _IS_CUDA:
            return True
        if function is torch.Tensor.get_device:
            return 0
        if function is torch.Tensor.cuda:
            return args[0]
        named = {name: _on_host(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
        return function(*map(_on_host, args), **named)


def install(arch: str) -> None:
    """From now on and in this whole process there seems to be one device of `arch`."""
    facts, cuda = TARGETS[arch], torch.cuda
    amd = facts.vendor == "amd"
    major, minor = capability(arch)
    properties = SimpleNamespace(
        name=arch,
        major=major,
        minor=minor,
        total_memory=_MEMORY_BYTES,
        multi_processor_count=facts.count,
        warp_size=facts.wave_size,
        shared_memory_per_block=min(facts.block_shared_bytes, 48 << 10),
        shared_memory_per_block_optin=facts.block_shared_bytes,
        shared_memory_per_multiprocessor=facts.shared_bytes,
        regs_per_multiprocessor=facts.registers * facts.simds * facts.wave_size,
        max_threads_per_multi_processor=facts.waves * facts.simds * facts.wave_size,
        **({"gcnArchName": arch} if amd else {}),
    )
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_device_name": lambda device=None: arch,
        "get_device_capability": lambda device=None: (major, minor),
        "get_device_properties": lambda device=None: properties,
        "mem_get_info": lambda device=None: (_MEMORY_BYTES, _MEMORY_BYTES),
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "current_stream": lambda device=None: _Stream(),
        "default_stream": lambda device=None: _Stream(),
        "is_current_stream_capturing": lambda: False,
        "stream": lambda stream: contextlib.nullcontext(),
        "device": lambda device: contextlib.nullcontext(),
        "device_of": lambda tensor: contextlib.nullcontext(),
        "Stream": _Stream,
        "Event": _Event,
    }
    for name, answer in answers.items():
        setattr(cuda, name, answer)
    for name in ("range_push", "range_pop", "mark"):
        setattr(cuda.nvtx, name, lambda *_: 0)
    torch.version.hip = "0.0" if amd else None
    torch.version.cuda = None if amd else "0.0"
    PretendDevice().__enter__()  # type: ignore[no-untyped-call]


class _Stream:
    """A stream on which nothing runs."""

    cuda_stream = 0

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def synchronize(self) -> None:
        """Nothing runs."""

    def wait_stream(self, other: object) -> None:
        """Nothing runs."""

    def wait_event(self, event: object) -> None:
        """Nothing runs."""

    def record_event(self, event: _Event | None = None) -> _Event:
        """An event that is over."""
        return event or _Event()


class _Event:
    """An event that is over."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def record(self, stream: object = None) -> None:
        """Nothing runs."""

    def synchronize(self) -> None:
        """Nothing runs."""

    def query(self) -> bool:
        """It is over."""
        return True

    def elapsed_time(self, end: object) -> float:
        """Milliseconds; not 0, which nobody may divide by."""
        return 1.0


def _on_host(value: Any) -> Any:
    """A device that stands for the GPU, exchanged for the CPU."""
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type in _WORDS else value
    if isinstance(value, str) and value.split(":", 1)[0] in _WORDS:
        return "cpu"
    return value
