"""The judge's side of a simulated AMD GPU, `--platform rocm-sim`: the ROCm platform where PyTorch has no ROCm.

Buffers are allocated, exported and opened by the HIP runtime, as on ROCm; PyTorch sees them as tensors of the CPU over
the same memory. Replaced are PyTorch's answers about the device, its own kernels, and all that rests on time.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

from arena import platforms
from arena.platforms import gpu
from arena.platforms.base import Memory, Platform
from arena.platforms.device import TorchDevice
from arena.platforms.rocm import hip_hipcc
from arena.platforms.rocm.hip_python import HipAnswer
from arena.platforms.rocm.platform import RocmPlatform
from arena.platforms.rocm.runtime_library import LIBRARY
from arena.platforms.toolchains.base import NativeWorker
from arena.processes.protocol import Handle
from arena.results.environment import DeviceFacts
from tests.rocm import machine, topology

NAME = "rocm-sim"
_NAME_BYTES = 256


class HipRuntime(gpu.Runtime):
    """The HIP runtime of this process, which no PyTorch has loaded."""

    def __init__(self, names: gpu.RuntimeNames) -> None:
        self._prefix, self._error_name, self._limit_s = names.prefix, names.error_name, names.sharing_limit_s
        self._library = ctypes.CDLL(f"{LIBRARY}.so")

    def name(self) -> str:
        """The name of device 0."""
        text = ctypes.create_string_buffer(_NAME_BYTES)
        self._call("DeviceGetName", text, ctypes.c_int(_NAME_BYTES), ctypes.c_int(0))
        return text.value.decode()

    def memory(self) -> Memory:
        """Free and total bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("MemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return Memory(free.value, total.value)

    def fill(self, address: int, num_bytes: int) -> None:
        """Fill memory by a kernel of the runtime's own, without waiting."""
        self._call("MemsetAsync", ctypes.c_void_p(address), ctypes.c_int(1), ctypes.c_size_t(num_bytes), None)


class SimulatedBuffer(gpu.DeviceBuffer):
    """An allocation of the simulated device; its memory is this process's too."""

    def __init__(self, runtime: gpu.Runtime, address: int, handle: Handle, owner: bool) -> None:
        import torch

        self.handle = handle
        self._runtime, self._address, self._owner = runtime, address, owner
        held = (ctypes.c_uint8 * handle.num_bytes).from_address(address)
        self.tensor = torch.frombuffer(held, dtype=torch.uint8)


class _Provider:
    """Says of the device what PyTorch's ROCm build would."""

    def __init__(self, device: RocmSimPlatform) -> None:
        self._device = device

    def describe(self) -> TorchDevice:
        """The topology's device, with the name and the memory that HIP reports."""
        runtime, made = self._device.hip_runtime, topology.MI300X
        memory = runtime.memory().total_bytes
        return TorchDevice(runtime.name(), made.arch, memory, made.l2_bytes, made.compute_units, made.wave_size)

    def memory(self) -> Memory:
        """What `hipMemGetInfo` says."""
        return self._device.hip_runtime.memory()

    def versions(self) -> dict[str, str]:
        """No AMD GPU is here, which every record says."""
        return {"simulated": "kernels by arena/platforms/cpu/amd_isa, driver by tests/rocm/driver: no times"}


class RocmSimPlatform(RocmPlatform):
    """ROCm on a simulated device. No graphs, since they serve timing."""

    name = NAME
    torch_device = "cpu"
    graphs = False

    def __init__(self) -> None:
        super().__init__(_Provider(self), ask=lambda: HipAnswer(0, "not asked: simulated"))

    @property
    def hip_runtime(self) -> HipRuntime:
        """The runtime; the first use initialises the device in this process."""
        if self._runtime is None:
            self._runtime = HipRuntime(self.names)
        assert isinstance(self._runtime, HipRuntime)
        return self._runtime

    @property
    def runtime(self) -> gpu.Runtime:
        """The same, under the name by which the ROCm classes know it."""
        return self.hip_runtime

    def facts(self) -> DeviceFacts:
        """Facts as on ROCm, under the name of this platform."""
        return replace(super().facts(), platform=NAME)

    def free_cache(self) -> None:
        """PyTorch holds no memory of this device."""

    def touch(self) -> None:
        """Have the runtime fill a few bytes: a kernel of its own."""
        if self._scratch is None:
            self._scratch = self.hip_runtime.malloc(64)
        self.hip_runtime.fill(self._scratch, 64)

    _scratch: int | None = None

    def linger(self, cycles: int) -> None:
        """Not simulated: nothing runs beside the judge."""

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait for this process alone: how long a kernel takes says nothing here."""
        self.launch_tiny_kernel()
        return True


def register() -> None:
    """Make the platform known in this process, and have workers load driver and runtime. Called by `site/`."""
    platforms._PLATFORMS[NAME] = f"{__name__}:{RocmSimPlatform.__name__}"
    platforms.NAMES = tuple(platforms._PLATFORMS)
    platforms.here = _here
    gpu.DeviceBuffer = SimulatedBuffer  # type: ignore[misc]
    vars(hip_hipcc)["loaded_runtime"] = lambda: Path(gpu.loaded_path(LIBRARY))
    hip_hipcc.HipccToolchain.native_worker = _native_worker  # type: ignore[assignment, method-assign]


_real_here, _real_native_worker = platforms.here, hip_hipcc.HipccToolchain.native_worker


def _here(name: str = "auto") -> Platform:
    return platforms.platform(name) if name == NAME else _real_here(name)


def _native_worker(toolchain: hip_hipcc.HipccToolchain, arch: str) -> NativeWorker:
    """As on ROCm, with the driver before the runtime: the sandbox hides the file that preloads it elsewhere."""
    found = _real_native_worker(toolchain, arch)
    return replace(found, runtime=Path(f"{machine.LIBRARY}:{found.runtime}"))
