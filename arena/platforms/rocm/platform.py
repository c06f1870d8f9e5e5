"""The ROCm platform: AMD devices. PyTorch is asked, as on CUDA; hip-python is asked too, and the two are compared.

Where both mean the same device, facts are hip-python's. So are the names of errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from arena.platforms.device import DeviceProvider, TorchDevice
from arena.platforms.gpu import GpuPlatform, RuntimeNames, gpu_facts
from arena.platforms.rocm.hip_launch import LaunchSeen, launch_code_object
from arena.platforms.rocm.hip_python import HipAnswer, ask_hip, error_name
from arena.platforms.rocm.runtime_library import LIBRARY
from arena.results.environment import DeviceFacts

IPC_MODE = "HSA_ENABLE_IPC_MODE_LEGACY"
_FELL_BACK = "ARENA_IPC_FALLBACK"
_AFFINITY = "HSA_OVERRIDE_CPU_AFFINITY_DEBUG"
VARIABLES = (
    *(IPC_MODE, _FELL_BACK, _AFFINITY, "HSA_OVERRIDE_GFX_VERSION", "HSA_CU_MASK", "ROC_GLOBAL_CU_MASK", "HSA_XNACK"),
    *("HIP_FORCE_DEV_KERNARG", "GPU_MAX_HW_QUEUES", "HSA_ENABLE_INTERRUPT", "HSA_ENABLE_SDMA", "HSA_ENABLE_PEER_SDMA"),
    *("HSA_NO_SCRATCH_RECLAIM", "HSA_SCRATCH_SINGLE_LIMIT", "HSA_ENABLE_SCRATCH_ASYNC_RECLAIM"),
)
"""what changes how the runtime runs kernels: the same for judge and workers, and in the record where it is set"""
_MODULE = Path("/sys/module/amdgpu")
# Only AMD's own build of the kernel module has a version of its own.
_MODULE_VERSION = _MODULE / "version"
_MEMORY_SLACK = 0.02
_SHARING_LIMIT_S = 30.0
"""ROCr waits 10 s for a client of its socket in the one direction, and for ever in the other"""
_SHARING = (
    f"; {IPC_MODE}=1 needs AMD's own amdgpu kernel module, {IPC_MODE}=0 needs workers in the judge's network namespace "
    "(the isolation of the record then says shared-network): see docs/evaluate/amd.md"
)


class RocmPlatform(GpuPlatform):
    """Triton's AMD backend, and HIP sources through hipcc."""

    name = "rocm"
    names = RuntimeNames("hip", LIBRARY, _SHARING, error_name, sharing_limit_s=_SHARING_LIMIT_S)

    def __init__(self, provider: DeviceProvider | None = None, ask: Callable[[], HipAnswer] = ask_hip) -> None:
        super().__init__(provider)
        self._ask = ask
        prepare_environment()

    @cached_property
    def hip(self) -> HipAnswer:
        """What hip-python says; asked once."""
        return self._ask()

    def facts(self) -> DeviceFacts:
        """Facts of device 0 of those visible, as hip-python and PyTorch agree on them, else as PyTorch says."""
        device = known_to_both(self.provider.describe(), self.hip)
        driver = module_version() or self.hip.runtime
        return gpu_facts("rocm", "amd", device, wave_size(device, self.hip), driver)

    def versions(self) -> dict[str, str]:
        """The runtime that PyTorch was built for, each of `VARIABLES` that is set, and `process_isolation`."""
        chosen = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        return {**super().versions(), **chosen, **process_isolation()}

    def restart_environment(self) -> dict[str, str] | None:
        """The other of the two ways of sharing, once: HIP reads the variable only when it is initialised."""
        if _FELL_BACK in os.environ:
            return None
        other = "1" if shares_by_socket() else "0"
        return {**os.environ, IPC_MODE: other, _FELL_BACK: f"{IPC_MODE}={other}"}

    def launch_code_object(self, code: Path, kernel: str) -> LaunchSeen:
        """Have hip-python load a code object and launch a kernel of it, see `hip_launch.py`."""
        return launch_code_object(code, kernel)

    def remarks(self) -> tuple[str, ...]:
        """What is odd about this device, one sentence each."""
        return disagreements(self.provider.describe(), self.hip)


def prepare_environment(environment: MutableMapping[str, str] = os.environ, module: Path = _MODULE) -> None:
    """Set what the HIP runtime reads when it is initialised, in this process and those that it starts.

    ROCr moves the threads that it starts to any processor unless told not to (ROCR-Runtime, flag.h). A worker whose
    threads leave its processors is refused.
    """
    choose_ipc_mode(environment, module)
    environment[_AFFINITY] = "0"


def choose_ipc_mode(environment: MutableMapping[str, str] = os.environ, module: Path = _MODULE) -> None:
    """Choose how device buffers are shared between processes; to be called before HIP is initialised.

    The HIP runtime shares an allocation either through the kernel module (the legacy mode, which only AMD's own build
    of the module offers) or as a DMA-buf that is handed over on an abstract Unix socket. Sources: ROCR-Runtime,
    runtime.cpp (IPCCreate, IPCClientImport) and flag.h; ROCR-Runtime issue 270. What the user has set is left alone.
    """
    if module.is_dir():
        environment.setdefault(IPC_MODE, "1" if (module / _MODULE_VERSION.name).is_file() else "0")


def shares_by_socket(environment: Mapping[str, str] = os.environ, module: Path = _MODULE) -> bool:
    """Return whether buffers are handed over on an abstract Unix socket, which ends at a network namespace."""
    chosen = dict(environment)
    choose_ipc_mode(chosen, module)
    return chosen.get(IPC_MODE) == "0"


def process_isolation(sys: Path = Path("/sys")) -> dict[str, str]:
    """Return what the kernel module says of running several processes at once; nothing where it says nothing.

    Sources: docs.kernel.org, "AMDGPU Process Isolation" (a value for each partition of a card); the module's parameter
    `hws_max_conc_proc`, 0 for one process at a time.
    """
    found = {}
    for file in sorted(sys.glob("class/drm/card*/device/enforce_isolation")):
        found[f"{file.name} {file.parts[-3]}"] = _read(file)
    found["hws_max_conc_proc"] = _read(sys / "module" / "amdgpu" / "parameters" / "hws_max_conc_proc")
    return {name: value for name, value in found.items() if value}


def module_version(path: Path = _MODULE_VERSION) -> str:
    """The version of AMD's own amdgpu kernel module; empty where the module is the kernel's."""
    return _read(path)


def _read(path: Path) -> str:
    """Return what a file of the kernel says; empty where it is not there, or not for us to read."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def known_to_both(device: TorchDevice, hip: HipAnswer) -> TorchDevice:
    """Return the device in hip-python's words; in PyTorch's where hip-python sees none, or contradicts PyTorch."""
    if not hip.devices or disagreements(device, hip):
        return device
    return replace(
        device,
        name=hip.detail,
        memory_bytes=hip.memory_bytes,
        wave_size=hip.wave_size or device.wave_size,
        multiprocessors=hip.multiprocessors or device.multiprocessors,
        l2_bytes=hip.l2_bytes or device.l2_bytes,
    )


def wave_size(device: TorchDevice, hip: HipAnswer) -> int:
    """Lanes of a wave: as PyTorch says; else as hip-python says, if it means the same device; else as the arch has."""
    if device.wave_size:
        return device.wave_size
    return hip.wave_size if hip.arch == device.arch and hip.wave_size else usual_wave_size(device.arch)


def usual_wave_size(arch: str) -> int:
    """64 up to gfx9 (GCN, CDNA), 32 from gfx10 (RDNA): the mode that compilers choose there."""
    major = arch.removeprefix("gfx")[:-2]
    return 32 if major.isdigit() and int(major) >= 10 else 64


def disagreements(device: TorchDevice, hip: HipAnswer) -> tuple[str, ...]:
    """Where hip-python and PyTorch say different things of device 0; PyTorch is the one that is believed."""
    if not hip.devices:
        return ()
    found = []
    if hip.arch != device.arch:
        found.append(f"hip-python sees {hip.arch}, PyTorch {device.arch}")
    if device.wave_size and hip.wave_size != device.wave_size:
        found.append(f"hip-python says waves of {hip.wave_size}, PyTorch of {device.wave_size}")
    if hip.multiprocessors and hip.multiprocessors != device.multiprocessors:
        found.append(f"hip-python counts {hip.multiprocessors} compute units, PyTorch {device.multiprocessors}")
    if abs(hip.memory_bytes - device.memory_bytes) > _MEMORY_SLACK * device.memory_bytes:
        found.append(f"hip-python counts {hip.memory_bytes} bytes of memory, PyTorch {device.memory_bytes}")
    return tuple(found)
