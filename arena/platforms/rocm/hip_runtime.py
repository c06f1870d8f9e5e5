"""The HIP runtime as hip-python offers it: device properties, error names, code objects, launches, occupancy.

hip-python answers every call with a tuple: the error, then the values. Here an error is a `HipError` with its name.
Used in processes without PyTorch (`hip_python.py`, `hip_launch.py`), since hip-python may load another runtime library.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from arena.errors import ArenaError

NO_DEVICE = "hipErrorNoDevice"


class HipError(ArenaError):
    """A call of the HIP runtime failed: the name of its error, or why there is no runtime to call."""


class HipProperties(NamedTuple):
    """Of one device; memory and cache in bytes. `arch` is without its features, as `gfx942`."""

    name: str
    arch: str
    wave_size: int
    memory_bytes: int
    multiprocessors: int
    l2_bytes: int


class HipRuntime:
    """Calls of `hip.hip`, whose modules, functions and pointers are passed on as they are."""

    def __init__(self) -> None:
        """Import hip-python, which loads no library yet. Raises `HipError` where it is missing or broken."""
        try:
            self._hip: Any = import_module("hip").hip
        except (ImportError, AttributeError, RuntimeError, OSError) as problem:
            raise HipError(f"hip-python cannot be imported ({problem})") from None

    def error_name(self, code: int) -> str:
        """Return the name of an error, such as `hipErrorOutOfMemory`; empty for a code that has none."""
        try:
            return str(self._hip.hipError_t(code).name)
        except ValueError:
            return ""

    def device_count(self) -> int:
        """Return how many devices the runtime sees. Raises `HipError`, `hipErrorNoDevice` where there are none."""
        return int(self._call("hipGetDeviceCount"))

    def version(self) -> str:
        """Return the runtime's version, as it numbers itself."""
        return str(self._call("hipRuntimeGetVersion"))

    def properties(self, device: int = 0) -> HipProperties:
        """Return what the runtime says of a device; hip-python 10 returns the structure, older ones fill it in."""
        try:
            found = self._call("hipGetDeviceProperties", device)
        except TypeError:
            found = self._hip.hipDeviceProp_t()
            self._call("hipGetDeviceProperties", found, device)
        return HipProperties(
            name=found.name.decode(),
            arch=found.gcnArchName.decode().partition(":")[0],
            wave_size=int(found.warpSize),
            memory_bytes=int(found.totalGlobalMem),
            multiprocessors=int(found.multiProcessorCount),
            l2_bytes=int(found.l2CacheSize),
        )

    def load(self, code: bytes) -> Any:
        """Load a code object. Raises `HipError` where it is none for this device."""
        return self._call("hipModuleLoadData", bytearray(code))

    def function(self, module: Any, name: str) -> Any:
        """Return the kernel of a loaded code object that has this symbol."""
        return self._call("hipModuleGetFunction", module, name.encode())

    def unload(self, module: Any) -> None:
        """Free a loaded code object."""
        self._call("hipModuleUnload", module)

    def blocks_per_multiprocessor(self, function: Any, threads: int, shared_bytes: int = 0) -> int:
        """Return how many blocks of so many threads a compute unit holds at once.

        Args:
            function: what `function` returned.
            threads: of a block.
            shared_bytes: of dynamic LDS.
        """
        return int(self._call("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, shared_bytes))

    def launch(
        self, function: Any, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        """Launch on the default stream and wait.

        Args:
            function: what `function` returned.
            grid: blocks in x, y and z.
            block: threads in x, y and z.
            arguments: the kernel's, as ctypes values and what `upload` returned; hip-python lays them out.
            shared_bytes: of dynamic LDS.
        """
        self._call("hipModuleLaunchKernel", function, *grid, *block, shared_bytes, None, None, tuple(arguments))
        self._call("hipDeviceSynchronize")

    def upload(self, data: bytes) -> Any:
        """Return an allocation of the device that holds these bytes."""
        pointer = self._call("hipMalloc", len(data))
        kind = self._hip.hipMemcpyKind.hipMemcpyHostToDevice
        self._call("hipMemcpy", pointer, bytearray(data), len(data), kind)
        return pointer

    def download(self, pointer: Any, num_bytes: int) -> bytes:
        """Return the bytes of an allocation."""
        data = bytearray(num_bytes)
        self._call("hipMemcpy", data, pointer, num_bytes, self._hip.hipMemcpyKind.hipMemcpyDeviceToHost)
        return bytes(data)

    def free(self, pointer: Any) -> None:
        """Free what `upload` returned."""
        self._call("hipFree", pointer)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Return the value that follows the error in the answer. Raises `HipError`; `TypeError` for other arguments."""
        try:
            code, *values = getattr(self._hip, name)(*arguments)
        except (AttributeError, RuntimeError, OSError) as problem:
            raise HipError(str(problem)) from None
        if int(code) != 0:
            raise HipError(str(getattr(code, "name", code)))
        return values[0] if values else None
