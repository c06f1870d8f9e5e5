"""What ROCm and CUDA share. PyTorch answers to `torch.cuda` on both; the runtimes differ in names, not in shape."""

from __future__ import annotations

import ctypes
import math
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena.errors import InfrastructureError
from arena.platforms.base import Memory, SharedBuffer
from arena.platforms.device import DeviceProvider, TorchDevice, TorchProvider
from arena.platforms.peaks import find_peaks, memory_side_cache, of_partition
from arena.processes.protocol import Handle
from arena.results.environment import DeviceFacts

if TYPE_CHECKING:
    import torch

_IPC_BYTES = 64
_BLOCK_BYTES = 2 << 20
"""Both runtimes place smaller allocations in blocks of this size, and export whole blocks. Sources: `simple_heap.h` of
ROCR-Runtime; CUDA's reference of `cudaIpcGetMemHandle`."""
_LEAST_BLOCKS = 2
"""ROCr keeps a freed single block for later small allocations, and whoever imported it may still have it mapped"""
_LIMIT_STACK_SIZE = 0
"""`cudaLimitStackSize`"""
_LAZY_PEER_ACCESS = 1
_SHARE_OF_WORKERS = 8
_IDLE_LAUNCHES = 20
_JITTER_S = 50e-6  # the processor's own; what another process runs delays a wait for longer


class _IpcHandle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * _IPC_BYTES),)


@dataclass(frozen=True)
class RuntimeNames:
    """How a vendor's functions begin, and how the file of its runtime library does."""

    prefix: str
    library: str
    sharing: str = ""
    """what to say where a buffer cannot be shared with another process"""
    error_name: Callable[[int], str] = lambda code: ""
    """the name of an error by its code; empty where nothing knows it"""
    local_bytes: int = 0
    """of local memory a thread, which every worker gets before its first kernel; 0: as much as kernels need"""
    sharing_limit_s: float = 0.0
    """for a call that shares memory or frees shared memory, where a worker can hold it up; 0: none can"""


class DeviceError(RuntimeError):
    """A call of the runtime returned an error, also one that a kernel has left on the device."""


class Runtime:
    """The few runtime calls that PyTorch does not offer: plain allocations and their inter-process handles."""

    def __init__(self, names: RuntimeNames) -> None:
        import torch

        torch.cuda.init()  # type: ignore[no-untyped-call]
        self._prefix, self._error_name, self._limit_s = names.prefix, names.error_name, names.sharing_limit_s
        self._library = ctypes.CDLL(loaded_path(names.library))

    def malloc(self, num_bytes: int) -> int:
        """Device address of a new allocation, on a boundary of its own."""
        pointer = ctypes.c_void_p()
        self._call("Malloc", ctypes.byref(pointer), ctypes.c_size_t(num_bytes))
        assert pointer.value is not None
        return pointer.value

    def free(self, address: int) -> None:
        """Free what `malloc` gave."""
        self._call_within("Free", ctypes.c_void_p(address))

    def export(self, address: int) -> str:
        """The inter-process handle of an allocation, in hex."""
        handle = _IpcHandle()
        self._call_within("IpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(address))
        return bytes(handle).hex()

    def open(self, handle: str) -> int:
        """Device address, in this process, of another process's allocation."""
        pointer = ctypes.c_void_p()
        raw = _IpcHandle.from_buffer_copy(bytes.fromhex(handle))
        self._call("IpcOpenMemHandle", ctypes.byref(pointer), raw, ctypes.c_uint(_LAZY_PEER_ACCESS))
        assert pointer.value is not None
        return pointer.value

    def close(self, address: int) -> None:
        """Unmap what `open` gave."""
        self._call("IpcCloseMemHandle", ctypes.c_void_p(address))

    def limit_stack(self, num_bytes: int) -> None:
        """Set the limit of local memory a thread, to which the device's memory for it is made at once."""
        self._call("DeviceSetLimit", ctypes.c_int(_LIMIT_STACK_SIZE), ctypes.c_size_t(num_bytes))

    def synchronize(self) -> None:
        """Wait for the device; unlike `torch.cuda.synchronize`, no Python attribute a candidate could replace."""
        self._call("DeviceSynchronize")

    def _call_within(self, name: str, *arguments: Any) -> None:
        """Call in a thread, and stop waiting for it at the limit. Raises `InfrastructureError` there."""
        if not self._limit_s:
            self._call(name, *arguments)
            return
        ended: Future[None] = Future()

        def call() -> None:
            try:
                self._call(name, *arguments)
                ended.set_result(None)
            except Exception as problem:
                ended.set_exception(problem)

        threading.Thread(target=call, daemon=True).start()  # one of a pool would be waited for at the process's end
        try:
            ended.result(self._limit_s)
        except TimeoutError:
            said = f"{self._prefix}{name} did not end within {self._limit_s:.0f} s"
            raise InfrastructureError(f"{said}: a worker holds up the sharing of buffers") from None

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, self._prefix + name)(*arguments)
        if code != 0:
            getattr(self._library, f"{self._prefix}GetLastError")()  # else PyTorch takes it for its next kernel's
            raise DeviceError(f"{self._prefix}{name} returned error {code} {self._error_name(code)}".rstrip())


class DeviceBuffer:
    """A device allocation of its own, seen as one flat uint8 tensor."""

    file: int | None = None

    def __init__(self, runtime: Runtime, address: int, handle: Handle, owner: bool) -> None:
        import torch

        self.handle = handle
        self._runtime, self._address, self._owner = runtime, address, owner
        self.tensor: torch.Tensor = torch.as_tensor(_ArrayView(address, handle.num_bytes), device="cuda")

    def close(self) -> None:
        """Free the allocation, or this process's mapping of it unless it is a lasting one."""
        if self._address and (self._owner or not self.handle.lasting):
            (self._runtime.free if self._owner else self._runtime.close)(self._address)
            self._address = 0


class _ArrayView:
    """Tells PyTorch of foreign device memory through the CUDA array interface, version 3."""

    def __init__(self, address: int, num_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (num_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


class GpuPlatform:
    """Base of the two GPU platforms; a subclass says how its runtime is called and what its device is."""

    name = "gpu"
    torch_device = "cuda"
    graphs = True
    spins = True
    late_work_delays = True
    names: RuntimeNames

    def __init__(self, provider: DeviceProvider | None = None) -> None:
        self.provider: DeviceProvider = provider or TorchProvider()
        self._runtime: Runtime | None = None
        self._cell: torch.Tensor | None = None
        self._least_tiny_launch_s = math.inf
        self._mapped: dict[str, DeviceBuffer] = {}
        self._local_memory_fixed = False

    @property
    def runtime(self) -> Runtime:
        """The runtime library; the first use initialises the device in this process."""
        if self._runtime is None:
            self._runtime = Runtime(self.names)
        return self._runtime

    def facts(self) -> DeviceFacts:
        """What PyTorch and the vendor's library say of device 0."""
        raise NotImplementedError

    def memory(self) -> Memory:
        """Memory of the device, whoever holds it."""
        return self.provider.memory()

    def multiprocessors(self) -> int:
        """Compute units or SMs."""
        return self.provider.describe().multiprocessors

    def versions(self) -> dict[str, str]:
        """The runtime that PyTorch was built for."""
        return self.provider.versions()

    def remarks(self) -> tuple[str, ...]:
        """Nothing, where PyTorch alone is asked."""
        return ()

    def allocate(self, num_bytes: int, *, lasting: bool = False) -> SharedBuffer:
        """A plain device allocation that can be exported; PyTorch's idle cache is given back first if need be."""
        whole_bytes = whole_blocks(num_bytes)
        try:
            address = self.runtime.malloc(whole_bytes)
        except RuntimeError:
            self.free_cache()
            address = self.runtime.malloc(whole_bytes)
        try:
            handle = Handle(num_bytes, self.runtime.export(address), lasting)
        except RuntimeError as problem:
            self.runtime.free(address)
            raise RuntimeError(f"{problem}{self.names.sharing}") from None
        return DeviceBuffer(self.runtime, address, handle, owner=True)

    def open(self, handle: Handle, file: int | None) -> SharedBuffer:
        """Map another process's allocation; a lasting one only once, since mapping gigabytes takes a while."""
        if handle.ipc not in self._mapped:
            try:
                address = self.runtime.open(handle.ipc)
            except RuntimeError as problem:
                raise RuntimeError(f"{problem}{self.names.sharing}") from None
            buffer = DeviceBuffer(self.runtime, address, handle, owner=False)
            if not handle.lasting:
                return buffer
            self._mapped[handle.ipc] = buffer
        return self._mapped[handle.ipc]

    def restart_environment(self) -> dict[str, str] | None:
        """On CUDA there is one way of sharing."""
        return None

    def synchronize(self) -> None:
        """Wait for the device through the runtime itself."""
        self.runtime.synchronize()

    def free_cache(self) -> None:
        """Give memory that PyTorch holds without using it back to the device."""
        import torch

        torch.cuda.empty_cache()

    def release_cached_memory(self) -> None:
        """Where little of the device is free, give back what PyTorch only keeps: workers need memory too."""
        memory = self.memory()
        if memory.free_bytes < memory.total_bytes // _SHARE_OF_WORKERS:
            self.free_cache()

    def touch(self) -> None:
        """Issue one tiny kernel; allocates for it the first time."""
        import torch

        if self._cell is None:
            self._cell = torch.zeros(1, device="cuda")
        self._cell.fill_(1.0)

    def linger(self, cycles: int) -> None:
        """By PyTorch's own kernel for tests of streams."""
        import torch

        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]

    def launch_tiny_kernel(self) -> None:
        """One tiny kernel: switching the device between processes costs some 0.2 ms, and varies."""
        self.touch()
        self.synchronize()

    def fix_local_memory(self) -> None:
        """On NVIDIA: local memory grows to what the hungriest kernel so far needed, and kernels that spill feel it."""
        if self.names.local_bytes and not self._local_memory_fixed:
            self.runtime.limit_stack(self.names.local_bytes)
            self._local_memory_fixed = True

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Run the marker kernel until a number in a row took little more than the fastest one of this process's life.

        Work of other processes delays it where the device runs one process at a time. AMD's may run several at once
        (`late_work_delays`): then what fills no more than a part of it passes unseen.
        """
        deadline, in_a_row = time.monotonic() + timeout_s, 0
        while in_a_row < _IDLE_LAUNCHES:
            if time.monotonic() > deadline:
                return False
            started = time.perf_counter()
            self.launch_tiny_kernel()
            seconds = time.perf_counter() - started
            self._least_tiny_launch_s = min(self._least_tiny_launch_s, seconds)
            in_a_row = in_a_row + 1 if seconds <= 2 * self._least_tiny_launch_s + _JITTER_S else 0
        return True


def whole_blocks(num_bytes: int) -> int:
    """Return the size of an allocation that holds so many bytes and shares no block of the runtime with another."""
    return max(_LEAST_BLOCKS, -(-num_bytes // _BLOCK_BYTES)) * _BLOCK_BYTES


def gpu_facts(platform: str, vendor: str, device: TorchDevice, wave_size: int, driver: str) -> DeviceFacts:
    """Facts of a device, with the peaks of its row in the table where it has one.

    PyTorch knows the L2 alone: on AMD a memory-side cache lies behind it, which is known by product, else by arch.
    A partition of an MI300X has the product's name, and fewer compute units.
    """
    product = find_peaks(device.name, device.arch)
    row = of_partition(product, device.multiprocessors) if product else None
    return DeviceFacts(
        platform=platform,
        vendor=vendor,
        arch=device.arch,
        name=device.name,
        wave_size=wave_size,
        memory_bytes=device.memory_bytes,
        last_level_cache_bytes=max(device.l2_bytes, row.cache_bytes if row else memory_side_cache(device.arch)),
        driver=driver,
        peak_bandwidth_gbs=row.bandwidth_gbs if row else None,
        peak_tflops=dict(row.tflops) if row else {},
        peak_source=row.source if row else "",
    )


def loaded_library(name: str, maps: str) -> str | None:
    """The path of the mapped library `name`, from the text of `/proc/PID/maps`; None where it is not mapped.

    `libamdhip64` is found as `libamdhip64.so`, `libamdhip64.so.7` and, with the hash that wheels put in,
    `libamdhip64-1a2b3c4d.so.7`; of several the first.
    """
    file = re.compile(rf"{re.escape(name)}(-[0-9a-f]+)?\.so(\.\d+)*")
    paths = (line.split(maxsplit=5)[5] for line in maps.splitlines() if "/" in line)
    return next((path for path in paths if file.fullmatch(path.rsplit("/", 1)[-1])), None)


def loaded_path(library: str) -> str:
    """Path of the runtime library that PyTorch has already loaded: a second copy would be a second runtime."""
    found = loaded_library(library, Path("/proc/self/maps").read_text(encoding="utf-8"))
    if found is None:
        raise InfrastructureError(f"PyTorch has not loaded {library}: is this a GPU build of torch? See `arena doctor`")
    return found
