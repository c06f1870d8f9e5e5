"""Execute the launches of Triton kernels that its AMD backend compiled: grid, arguments and the binary of each.

The caller installs a driver for the target (as cross-compilation does) and has it hand binaries and launches over to
this module. Pointers are tensors of this process; what a launch is given becomes accessible memory.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.execute import TOGETHER
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.launch import Launch, LoadedCode
from arena.platforms.cpu.amd_isa.memory import DeviceMemory

_FORMATS = {"i1": "<?", "u1": "<?", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I"}
_FORMATS |= {"i64": "<q", "u64": "<Q", "fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
_SCRATCH_POINTERS = 2
"""a kernel's last arguments: global scratch and profile scratch, null where it needs none"""


class TritonHost:
    """The kernels that one process launches for one architecture."""

    def __init__(self, arch: str, memory: DeviceMemory, objdump: Path) -> None:
        self._arch, self._memory, self._objdump = arch, memory, objdump
        self._loaded: dict[int, tuple[str, LoadedCode]] = {}
        self.launches: list[Launch] = []
        self.deadline = float("inf")
        self.order = TOGETHER
        self.seconds = 0.0
        """of all launches so far"""

    def limit(self, seconds: float) -> None:
        """Give launches up after so many seconds from now."""
        self.deadline = time.monotonic() + seconds

    def mnemonics(self) -> dict[str, int]:
        """Return how often each mnemonic stands in the code objects that were loaded."""
        return dict(sum((loaded.mnemonics() for _, loaded in self._loaded.values()), Counter[str]()))

    def load(self, name: str, binary: bytes) -> int:
        """Take a code object over; return the handle of its kernel `name`."""
        self._loaded[len(self._loaded) + 1] = name, LoadedCode(binary, self._arch, self._memory, self._objdump)
        return len(self._loaded)

    def launcher(self, source: Any, metadata: Any) -> Callable[..., None]:
        """Return what Triton calls to launch: the interface of its backends' launchers."""
        kinds = list(source.signature.values())
        if getattr(metadata, "global_scratch_size", 0):
            raise NotModelled("a Triton kernel with global scratch memory")

        def launch(x: int, y: int, z: int, stream: object, handle: int, *rest: Any) -> None:
            arguments = rest[-len(kinds) :] if kinds else ()
            self._run(handle, (int(x), int(y), int(z)), metadata, list(zip(kinds, arguments, strict=True)))

        return launch

    def _run(self, handle: int, grid: tuple[int, int, int], metadata: Any, arguments: list[tuple[Any, Any]]) -> None:
        if 0 in grid:
            return
        name, loaded = self._loaded[handle]
        values = [value for kind, given in arguments for value in self._values(kind, given)]
        values += [bytes(8)] * _SCRATCH_POINTERS
        explicit = [parameter for parameter in loaded.code.kernels[name].parameters if not parameter.hidden]
        sizes = [len(value) for value in values]
        if sizes != [parameter.size for parameter in explicit]:
            raise NotModelled(f"{name}: arguments of {sizes} bytes, the kernel has others")
        segment = bytearray(max((p.offset + p.size for p in explicit), default=0))
        for parameter, value in zip(explicit, values, strict=True):
            segment[parameter.offset : parameter.offset + parameter.size] = value
        block = (int(metadata.num_warps) * int(metadata.warp_size), 1, 1)
        launch = Launch(name, grid, block, int(metadata.shared), bytes(segment))
        self.launches.append(launch)
        began = time.monotonic()
        loaded.run(launch, self.deadline, self.order)
        self.seconds += time.monotonic() - began

    def _values(self, kind: Any, given: Any) -> Iterator[bytes]:
        """Return the bytes of an argument; constants have none, tuples those of their members."""
        if isinstance(kind, tuple):
            for member, value in zip(kind, given, strict=True):
                yield from self._values(member, value)
        elif kind == "constexpr":
            return
        elif str(kind).startswith("tensordesc"):
            yield from self._descriptor(given)
        elif str(kind).startswith("*"):
            yield struct.pack("<Q", self._pointer(given))
        elif kind == "bf16":
            yield (np.array([given], np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        elif kind in _FORMATS:
            yield struct.pack(_FORMATS[kind], given)
        else:
            raise NotModelled(f"a Triton argument of type {kind}")

    def _descriptor(self, given: Any) -> Iterator[bytes]:
        """A host-side tensor descriptor, as the AMD backend takes it apart."""
        sizes = [struct.pack("<q", size) for size in (*given.shape, *given.strides)]
        flags = given.padding == "nan", bool(given.round_f32_to_tf32)
        yield struct.pack("<Q", self._pointer(given.base))
        yield from sizes
        yield from (struct.pack("<?", flag) for flag in flags)
        yield from (struct.pack("<i", size) for size in given.shape)
        yield from sizes[len(given.shape) :]

    def _pointer(self, given: Any) -> int:
        """Return the address of a tensor, whose storage becomes accessible where it is not yet."""
        if given is None:
            return 0
        address = int(given.data_ptr()) if hasattr(given, "data_ptr") else int(given)
        tensor = given if hasattr(given, "untyped_storage") else getattr(given, "base", given)
        if hasattr(tensor, "untyped_storage") and not self._memory.holds(address):
            storage = tensor.untyped_storage()
            self._memory.add(storage.data_ptr(), storage.nbytes(), "a tensor", storage)
        return address
