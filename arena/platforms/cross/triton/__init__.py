"""Cross-compile Triton kernels for another GPU, by the launches that a candidate's own code makes.

The candidate's entry is called with the arguments of a real case. A stand-in driver answers for the target, so every
launch is specialized, autotuned over and compiled as there; the binary is read for what it uses and not run. One
process serves one target, since PyTorch and Triton are changed for good. Resource limits are enforced by Triton's own
checks against the target's figures.
"""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from arena.platforms.cross.triton.driver import Host, Records
from arena.platforms.toolchains.targets import TARGETS


def missing(arch: str) -> str:
    """What this machine lacks in order to compile Triton kernels for `arch`; empty where it lacks nothing."""
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        return "Triton is not installed: `pip install triton`"
    vendor = TARGETS[arch].vendor
    backend = Path(found.origin).parent / "backends" / vendor
    return "" if backend.is_dir() else f"this Triton has no backend for {vendor}: `pip install triton`"


def install(arch: str, *, each_once: bool = False, ahead: bool = False, host: Host | None = None) -> Records:
    """Make this process compile for `arch` (a name in `targets.TARGETS`) and return where launches are recorded.

    With `each_once`, launches whose signature has been built are passed over. Kernels compiled `ahead` of a device are
    not recorded; the C code that launches them is compiled too. A `host` executes what is launched, which is not run
    else. `TRITON_INTERPRET` must not be set. Imports torch and triton.
    """
    import triton.testing
    from triton.runtime.driver import driver

    from arena.platforms.cross.triton import pretend
    from arena.platforms.cross.triton.driver import StandInDriver, benchmark_once

    records = Records()
    driver.set_active(StandInDriver(arch, records, ahead=ahead, host=host))
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, benchmark_once)
    pretend.install(arch)
    if each_once:
        pretend.build_each_once()
    return records


def warm() -> None:
    """Do once, before workers are forked, what each of them would spend most of its first launch on.

    Triton hashes itself, asks its compilers for their versions, looks for the driver's library, and imports whatever an
    argument could be. No device is touched.
    """
    for part in (_hash_triton, _ask_compilers, _find_driver, _import_kinds):
        with suppress(Exception):  # Triton moves these between versions; whoever launches does the rest
            part()


def _hash_triton() -> None:
    for name in ("triton.runtime.cache", "triton.compiler.compiler"):
        hashed = getattr(import_module(name), "triton_key", None)
        if hashed is not None:
            hashed()
            return


def _ask_compilers() -> None:
    import torch
    from triton.compiler.compiler import make_backend

    from arena.platforms.cross.triton.driver import gpu_target

    vendor = "amd" if torch.version.hip else "nvidia"
    for arch, target in TARGETS.items():
        if target.vendor == vendor:
            make_backend(gpu_target(arch)).hash()


def _find_driver() -> None:
    import torch

    if torch.version.hip:
        from triton.backends.amd import driver as amd

        amd._get_path_to_hip_runtime_dylib()
    else:
        from triton.backends.nvidia import driver as nvidia

        nvidia.libcuda_dirs()


def _import_kinds() -> None:
    from triton.runtime import jit

    jit.mangle_type(1)
