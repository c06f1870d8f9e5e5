"""Programs whose machine code for an AMD GPU is executed on the CPU: what cross-compilation builds, on real arguments.

In: a file of Triton kernels, or a HIP library with the stand-in runtime beside it. A launch runs in
`arena.platforms.cpu.amd_isa`. The device's memory are the tensors of the shared buffer, and what the program allocates.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.hip_host import HipHost
from arena.platforms.cpu.amd_isa.memory import DeviceMemory
from arena.platforms.cpu.amd_isa.triton_host import TritonHost
from arena.platforms.cross import triton as triton_cross
from arena.processes.protocol import Load, TensorArgument
from arena.results.portability import KernelUse
from arena.task.numerics.reference import load_module
from arena.worker.binding import Binding, outermost
from arena.worker.c_values import c_value
from arena.worker.modules import callee

RUNTIME = "libhost_runtime.so"
"""the stand-in runtime, in the folder of a HIP library"""


class BoundMemory:
    """The tensors that are bound now, as memory of a device."""

    def __init__(self) -> None:
        self.device = DeviceMemory()
        self._starts: list[int] = []

    def bind(self, binding: Binding | None) -> None:
        """Make the tensors of every set accessible in place of the former ones."""
        for start in self._starts:
            self.device.remove(start)
        self._starts = []
        for start, num_bytes, name, owner in () if binding is None else _tensors(binding):
            self.device.add(start, num_bytes, name, owner)
            self._starts.append(start)


class TritonMachineEntry:
    """A Triton candidate: its Python code launches on a stand-in for the target, which executes what Triton built."""

    def __init__(self, message: Load) -> None:
        self._memory = BoundMemory()
        host = TritonHost(message.target, self._memory.device, Path(message.disassembler))
        self._records = triton_cross.install(message.target, host=host)
        path = Path(message.path)
        self._callee = callee(load_module(path, "candidate"), message, path.name)

    def bind(self, binding: Binding | None) -> None:
        """Keep the argument lists, and make their tensors memory of the device."""
        self._memory.bind(binding)
        self._callee.bind(binding)

    def load_constants(self) -> None:
        """Have a module constructed."""
        self._callee.load_constants()

    def call(self, index: int) -> None:
        """Call the function or the module; every launch is over when it returns."""
        self._callee.call(index)

    def copy_back(self, index: int) -> None:
        """Outputs were written in place."""

    def kernels(self) -> tuple[KernelUse, ...]:
        """Return what the launches since the last time were compiled to."""
        return self._records.take()


class HipMachineEntry:
    """A HIP library for the target: its host code runs as clang built it, against the stand-in runtime."""

    def __init__(self, message: Load) -> None:
        library, self._name, self._memory = Path(message.path), message.entry, BoundMemory()
        runtime = library.with_name(RUNTIME)
        self._host = HipHost(library, runtime, message.target, self._memory.device, Path(message.disassembler))
        self._calls: list[list[Any]] = []
        self._axes: list[Any] = []

    def bind(self, binding: Binding | None) -> None:
        """Turn every set's arguments into C values, and make their tensors memory of the device."""
        self._memory.bind(binding)
        self._calls = []
        if binding is None:
            return
        self._axes = [ctypes.c_int64(size) for size in binding.message.axes]
        for values in binding.values:
            pairs = zip(binding.message.arguments, values, strict=True)
            self._calls.append([c_value(argument, value) for argument, value in pairs])

    def load_constants(self) -> None:
        """It is given them in every call."""

    def call(self, index: int) -> None:
        """Call the host function; every launch is over when it returns."""
        workspace = self._host.workspace_bytes(self._name, self._axes)
        scratch = [] if workspace is None else [ctypes.c_void_p(self._host.allocate(max(1, workspace)))]
        code = self._host.call(self._name, [*self._calls[index], *self._axes, *scratch, ctypes.c_void_p(None)])
        if code:
            raise NotModelled(f"the host function returned {code}")

    def copy_back(self, index: int) -> None:
        """Outputs were written in place."""

    def kernels(self) -> tuple[KernelUse, ...]:
        """Return nothing: what its library holds was read where it was built."""
        return ()


def _tensors(binding: Binding) -> Iterator[tuple[int, int, str, object]]:
    """Address, bytes, name and owner of every tensor of every set, as the candidate gets it; views lie in others."""
    for values in binding.values:
        found: dict[tuple[int, int], tuple[str, object]] = {}
        for argument, value in zip(binding.message.arguments, values, strict=True):
            if isinstance(argument, TensorArgument) and 0 not in argument.shape:
                tensor: Any = value
                span = 1 + sum((n - 1) * s for n, s in zip(argument.shape, argument.strides, strict=True))
                start = int(tensor.data_ptr())
                found.setdefault((start, start + span * int(tensor.element_size())), (argument.name, tensor))
        for start, end, _ in outermost([(*place, name) for place, (name, _) in found.items()]):
            yield (start, end - start, *found[start, end])
