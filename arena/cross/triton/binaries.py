"""What a compiled kernel uses, read from the binary itself: no GPU and no driver is asked."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from arena.errors import InfrastructureError
from arena.model.portability import KernelUse
from arena.toolchains.targets import TARGETS

_NOTE_SECTION = 7
_AMDGPU_METADATA = 32
_REGISTER_BYTES = 4


class _Kernel(msgspec.Struct):
    """One kernel of an AMD code object's metadata, version 3 and later (LLVM's AMDGPU usage guide)."""

    name: str = msgspec.field(name=".name")
    vgprs: int = msgspec.field(name=".vgpr_count")
    sgprs: int = msgspec.field(name=".sgpr_count")
    vgpr_spills: int = msgspec.field(name=".vgpr_spill_count", default=0)


class _Metadata(msgspec.Struct):
    kernels: list[_Kernel] = msgspec.field(name="amdhsa.kernels")


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
    for note in _metadata_notes(binary):
        for kernel in msgspec.msgpack.decode(note, type=_Metadata).kernels:
            if kernel.name == name:
                spilled = kernel.vgpr_spills * _REGISTER_BYTES
                return KernelUse(name, kernel.vgprs, spill_bytes=spilled, scalar_registers=kernel.sgprs)
    raise InfrastructureError(f"the code object has no metadata for the kernel {name}")


def _metadata_notes(binary: bytes) -> Iterator[bytes]:
    """The descriptors of AMD's metadata notes in a little-endian ELF64 file."""
    (table,) = struct.unpack_from("<Q", binary, 0x28)
    entry_bytes, count = struct.unpack_from("<HH", binary, 0x3A)
    for index in range(count):
        at = table + index * entry_bytes
        (kind,) = struct.unpack_from("<I", binary, at + 4)
        offset, size = struct.unpack_from("<QQ", binary, at + 24)
        if kind == _NOTE_SECTION:
            yield from _notes(binary[offset : offset + size])


def _notes(section: bytes) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(section):
        name_bytes, content_bytes, kind = struct.unpack_from("<III", section, at)
        content = at + 12 + -(-name_bytes // 4) * 4
        if kind == _AMDGPU_METADATA:
            yield section[content : content + content_bytes]
        at = content + -(-content_bytes // 4) * 4


def _of_cubin(binary: bytes, name: str) -> KernelUse:
    """Asks the cuobjdump that comes with Triton."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        command = [str(_cuobjdump()), "--dump-resource-usage", file.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    pattern = rf"Function {re.escape(name)}:\s+REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)"
    found = re.search(pattern, done.stdout)
    if found is None:
        raise InfrastructureError(f"cuobjdump says nothing of {name}: {(done.stderr or done.stdout).strip()[:200]}")
    registers, stack, local = map(int, found.groups())
    return KernelUse(name, registers, spill_bytes=max(stack, local))


def _cuobjdump() -> Path:
    import triton

    return Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
