"""A Triton driver for a cross-compilation target: kernels are compiled for it, checked against it, and not run."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from arena.errors import InfrastructureError
from arena.platforms.rocm.amd_code_object import CodeObject
from arena.platforms.toolchains.targets import TARGETS, Multiprocessor
from arena.results.portability import KernelUse

_REGISTER_BYTES = 4


def kernel_use(binary: bytes, name: str, arch: str, *, shared_bytes: int, block_waves: int) -> KernelUse:
    """Resource use of the kernel `name` in a code object (AMD) or cubin (NVIDIA), launched as given.

    `shared_bytes` is what a launch asks for, all of a Triton kernel's. Raises `InfrastructureError` where the binary
    cannot be read.
    """
    read = _of_code_object if TARGETS[arch].vendor == "amd" else _of_cubin
    found = read(binary, name)
    share = TARGETS[arch].occupancy(found.registers, shared_bytes, block_waves)
    return replace(found, shared_bytes=shared_bytes, occupancy=share)


def _of_code_object(binary: bytes, name: str) -> KernelUse:
    kernel = CodeObject(binary).kernels.get(name)
    if kernel is None:
        raise InfrastructureError(f"the code object has no metadata for the kernel {name}")
    return KernelUse(
        name, kernel.vgprs, spill_bytes=kernel.vgpr_spills * _REGISTER_BYTES, scalar_registers=kernel.sgprs
    )


def _of_cubin(binary: bytes, name: str) -> KernelUse:
    """Asks the cuobjdump that comes with Triton."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        command = [str(_cuobjdump()), "--dump-resource-usage", file.name]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=30, check=False)
    pattern = rf"Function {re.escape(name)}:\s+REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)"
    found = re.search(pattern, done.stdout)
    if found is None:
        raise InfrastructureError(f"cuobjdump says nothing of {name}: {(done.stderr or done.stdout).strip()[:200]}")
    registers, stack, local = map(int, found.groups())
    return KernelUse(name, registers, spill_bytes=max(stack, local))


def _cuobjdump() -> Path:
    import triton

    return Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


_OF_VENDOR = {"nvidia": ("CudaUtils", "CudaLauncher"), "amd": ("HIPUtils", "HIPLauncher")}


class Launchers:
    """Builds what a worker with a device of one vendor would build at its first launches, as far as it can be here."""

    def __init__(self, vendor: str) -> None:
        """`vendor`: `amd` or `nvidia`, as Triton names its backends."""
        self._driver = import_module(f"triton.backends.{vendor}.driver")
        utils, self._launcher = _OF_VENDOR[vendor]
        self._built(getattr(self._driver, utils))

    def build(self, source: object, metadata: Any) -> None:
        """Build the launcher of a kernel, where each has its own."""
        if hasattr(self._driver, "make_launcher"):
            self._built(getattr(self._driver, self._launcher), source, metadata)

    @staticmethod
    def _built(kind: Any, *arguments: object) -> None:
        try:
            kind(*arguments)
        except Exception:  # without a driver's library, or a C compiler: whoever launches says so, or builds it
            return


_MAX_BLOCK_THREADS = 1024
_ONE_MS = 1.0


class Records:
    """The kernels that were compiled and would have been launched."""

    def __init__(self) -> None:
        self.kernels: list[KernelUse] = []

    def take(self) -> tuple[KernelUse, ...]:
        """What was recorded since the last time."""
        taken = tuple(self.kernels)
        self.kernels.clear()
        return taken


class Host(Protocol):
    """Whoever executes what is launched."""

    def load(self, name: str, binary: bytes) -> int:
        """Take a binary over; return the handle of its kernel `name`."""

    def launcher(self, source: Any, metadata: Any) -> Callable[..., None]:
        """Return what Triton calls to launch."""


class _Utils:
    """What Triton asks of a device while it loads a kernel."""

    def __init__(self, facts: Multiprocessor, records: Records, host: Host | None, *, ahead: bool) -> None:
        self._facts, self._records, self._host, self._ahead = facts, records, host, ahead
        self.block_waves = 1

    def get_device_properties(self, device: int) -> dict[str, object]:
        """The fields that Triton and its kernels' Python code read; clocks and bus are not known, and are 0."""
        facts = self._facts
        return {
            "max_shared_mem": facts.block_shared_bytes,
            "max_num_regs": facts.registers * facts.simds * facts.wave_size,
            "multiprocessor_count": facts.count,
            "warpSize": facts.wave_size,
            "arch": facts.arch,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    def load_binary(self, name: str, binary: bytes, shared_bytes: int, device: int) -> tuple[object, ...]:
        """Read what the kernel uses; answers as the real ones do: module, function, registers, spills, thread limit."""
        if self._ahead:
            return (None, 0, 0, 0, _MAX_BLOCK_THREADS)
        use = kernel_use(binary, name, self._facts.arch, shared_bytes=shared_bytes, block_waves=self.block_waves)
        self._records.kernels.append(use)
        handle = self._host.load(name, binary) if self._host else 0
        return (None, handle, use.registers, use.spill_bytes, _MAX_BLOCK_THREADS)

    def unload_module(self, module: object) -> None:
        """Nothing was loaded."""

    def set_printf_fifo_size(self, num_bytes: int) -> None:
        """Nothing prints."""


class StandInDriver:
    """Answers for one target as the drivers of Triton's backends do for the device that is there.

    What is compiled `ahead` of a device is not recorded, but the C code that launches it is compiled with it.
    """

    def __init__(self, arch: str, records: Records, *, ahead: bool = False, host: Host | None = None) -> None:
        facts = TARGETS[arch]
        self._target = gpu_target(arch)
        self._arch = arch
        self._launchers, self._host = Launchers(facts.vendor) if ahead else None, host
        self.utils = _Utils(facts, records, host, ahead=ahead)
        self.launcher_cls = self._launcher

    def _launcher(self, source: object, metadata: Any) -> Callable[..., None]:
        """A launch that does nothing, or what the host does.

        Triton makes it just before it loads the binary: note how large a block is.
        """
        self.utils.block_waves = int(metadata.num_warps)
        if self._launchers is not None:
            self._launchers.build(source, metadata)
        return self._host.launcher(source, metadata) if self._host else lambda *args, **kwargs: None

    def get_current_target(self) -> object:
        """What Triton compiles for."""
        return self._target

    def get_current_device(self) -> int:
        """There is one device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """Compute capability, or the like of it that PyTorch gives on ROCm."""
        return capability(self._arch)

    def get_active_torch_device(self) -> object:
        """Where tensors seem to be."""
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> object:
        """The module that a backend's driver names, itself pretended."""
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """For the autotuner: every configuration is compiled, and none is faster than another."""
        return benchmark_once

    def get_empty_cache_for_benchmark(self) -> object:
        """Nothing is measured, so nothing need be evicted."""
        import torch

        return torch.empty(0)

    def clear_cache(self, cache: object) -> None:
        """Nothing is measured."""

    def map_python_to_cpp_type(self, kind: str) -> str:
        """Only launchers ask."""
        return kind


def gpu_target(arch: str) -> Any:
    """Return what Triton calls a GPU that it compiles for."""
    from triton.backends.compiler import GPUTarget

    facts = TARGETS[arch]
    backend, name = ("hip", arch) if facts.vendor == "amd" else ("cuda", int(arch.removeprefix("sm_")))
    return GPUTarget(backend, name, facts.wave_size)


def benchmark_once(kernel_call: Callable[[], object], *args: object, **kwargs: object) -> list[float]:
    """Call once, so that the kernel is compiled, and answer in the three quantiles that the autotuner wants, in ms."""
    kernel_call()
    return [_ONE_MS] * 3


def capability(arch: str) -> tuple[int, int]:
    """(9, 0) for sm_90, (9, 4) for gfx942, (12, 0) for gfx1201: as `torch.cuda.get_device_capability` has it."""
    digits = arch.removeprefix("gfx").removeprefix("sm_")
    if arch.startswith("gfx"):
        return int(digits[:-2]), int(digits[-2], 16)
    return int(digits[:-1]), int(digits[-1])
