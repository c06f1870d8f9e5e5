"""Instructions of a kernel that lies in device memory: found from its entry alone, without the file it came from.

ROCr copies code objects into device memory, and the shaders of its own copies have no file. So the bytes from a
kernel's entry are disassembled as far as control can reach, and kept by their content.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

from arena.platforms.cpu.amd_isa.disassembly import Instruction, disassemble
from arena.platforms.cpu.amd_isa.program import target

_WINDOW_BYTES = 32 << 10
_MOST_BYTES = 4 << 20
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_IDENT = b"\x7fELF\x02\x01\x01\x40\x04" + bytes(7)
"""ELF of 64 bits for HSA, version 4 of its interface"""
_AMDGPU, _MACHINES = 224, {"gfx942": 0x54C, "gfx950": 0x54F, "gfx90a": 0x53F}
"""EM_AMDGPU, and EF_AMDGPU_MACH with "any" for sramecc and xnack; LLVM's "User Guide for AMDGPU Backend" """
_NAMES = b"\0.text\0.shstrtab\0"
_PROGRAM, _STRINGS = 1, 3
_ENDS = ("s_endpgm", "s_setpc_b64", "s_trap", "s_branch")

Window = Callable[[int], bytes]
"""returns so many bytes from the entry, or fewer where the buffer ends"""


class CodeOfKernels:
    """The instructions of every kernel that was asked for."""

    def __init__(self, arch: str, objdump: Path, cache: Path) -> None:
        """`cache`: a folder for decoded code, which processes may share."""
        self._arch, self._objdump, self._cache = arch, objdump, cache
        cache.mkdir(parents=True, exist_ok=True)

    def read(self, window: Window) -> tuple[bytes, dict[int, Instruction]]:
        """Return the bytes that control can reach from the entry, and their instructions; the entry is address 0."""
        size = _WINDOW_BYTES
        while True:
            raw = window(size)
            found = self._decoded(raw)
            end = reach(found, len(raw))
            if end is not None or len(raw) < size or size >= _MOST_BYTES:
                return raw[: len(raw) if end is None else end], found
            size *= 4

    def _decoded(self, raw: bytes) -> dict[int, Instruction]:
        kept = self._cache / f"{hashlib.sha256(raw).hexdigest()[:24]}.{self._arch}"
        if kept.is_file():
            found: dict[int, Instruction] = pickle.loads(kept.read_bytes())
            return found
        found = disassemble(code_object(raw, self._arch), self._objdump)
        written = kept.with_suffix(f".{id(found)}")
        written.write_bytes(pickle.dumps(found))
        written.replace(kept)
        return found


def reach(instructions: dict[int, Instruction], num_bytes: int) -> int | None:
    """Return the end of the instructions that control can reach from address 0; None where it leaves the bytes.

    Addresses in registers, by which a function is called that was not inlined, are not followed.
    """
    seen: set[int] = set()
    waiting, end = [0], 0
    while waiting:
        at = waiting.pop()
        while at not in seen:
            ins = instructions.get(at)
            if ins is None:
                return None if at >= num_bytes - 8 else max(end, at)
            seen.add(at)
            end = max(end, ins.following)
            if ins.name.startswith(("s_cbranch", "s_branch", "s_call")):
                waiting.append(target(ins))
            if ins.name in _ENDS:
                break
            at = ins.following
    return end


def code_object(raw: bytes, arch: str) -> bytes:
    """Return an object file whose `.text` is these bytes, at address 0."""
    text_at = _HEADER.size
    names_at = text_at + len(raw)
    sections_at = -(-(names_at + len(_NAMES)) // 8) * 8
    flags = _MACHINES[arch]
    header = _HEADER.pack(_IDENT, 1, _AMDGPU, 1, 0, 0, sections_at, flags, _HEADER.size, 0, 0, _SECTION.size, 3, 2)
    sections = (
        bytes(_SECTION.size)
        + _SECTION.pack(1, _PROGRAM, 0b110, 0, text_at, len(raw), 0, 0, 256, 0)
        + _SECTION.pack(7, _STRINGS, 0, 0, names_at, len(_NAMES), 0, 0, 1, 0)
    )
    body = header + raw + _NAMES
    return body.ljust(sections_at, b"\0") + sections
