"""What a compiled kernel uses, read from the binary itself: no GPU and no driver is asked."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms.rocm.amd_code_object import CodeObject
from arena.platforms.toolchains.targets import TARGETS
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
