"""Read AMD code objects: kernels with their descriptors and metadata, the loaded image, and bundles of clang.

Layouts: LLVM's "User Guide for AMDGPU Backend" (kernel descriptor, code object metadata, ELF relocations) and clang's
"Offload Bundler". The files come from this project's own builds; what does not fit raises `CodeObjectError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from arena.errors import InfrastructureError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MACHINE = 224
_LOAD = 1
_SYMBOLS, _RELOCATIONS, _NOTES, _DYNAMIC_SYMBOLS = 2, 4, 7, 11
_METADATA_NOTE = 32
_ABS32_LO, _ABS32_HI, _ABS64, _REL32, _REL64, _RELATIVE64 = 1, 2, 3, 4, 5, 13
_PAGE = 4096
_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"


class CodeObjectError(InfrastructureError):
    """The bytes are no code object that this module reads."""


class Parameter(msgspec.Struct):
    """One entry of a kernel's `.args`."""

    offset: int = msgspec.field(name=".offset")
    size: int = msgspec.field(name=".size")
    value_kind: str = msgspec.field(name=".value_kind")

    @property
    def hidden(self) -> bool:
        """Return whether the runtime, not the caller, supplies it."""
        return self.value_kind.startswith("hidden_")


class KernelMetadata(msgspec.Struct):
    """One kernel of the metadata note: what a runtime reads before it launches."""

    name: str = msgspec.field(name=".name")
    symbol: str = msgspec.field(name=".symbol")
    kernarg_size: int = msgspec.field(name=".kernarg_segment_size")
    lds_bytes: int = msgspec.field(name=".group_segment_fixed_size")
    scratch_bytes: int = msgspec.field(name=".private_segment_fixed_size")
    vgprs: int = msgspec.field(name=".vgpr_count")
    sgprs: int = msgspec.field(name=".sgpr_count")
    vgpr_spills: int = msgspec.field(name=".vgpr_spill_count", default=0)
    wave_size: int = msgspec.field(name=".wavefront_size", default=64)
    agprs: int = msgspec.field(name=".agpr_count", default=0)
    dynamic_stack: bool = msgspec.field(name=".uses_dynamic_stack", default=False)
    parameters: list[Parameter] = msgspec.field(name=".args", default_factory=list)


class _CodeMetadata(msgspec.Struct):
    kernels: list[KernelMetadata] = msgspec.field(name="amdhsa.kernels")


@dataclass(frozen=True)
class Descriptor:
    """The 64 bytes of a kernel descriptor, decoded as far as a launch needs them."""

    entry: int
    """virtual address of the first instruction"""
    rsrc1: int
    rsrc2: int
    properties: int
    preload_words: int
    preload_offset: int


@dataclass(frozen=True)
class _Section:
    kind: int
    address: int
    offset: int
    size: int
    link: int


class CodeObject:
    """One ELF file for one architecture."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        if len(data) < _HEADER.size:
            raise CodeObjectError("too short for an ELF file")
        fields = _HEADER.unpack_from(data)
        if not fields[0].startswith(b"\x7fELF\x02\x01") or fields[2] != _MACHINE:
            raise CodeObjectError("no ELF file for AMD GPUs")
        self._segments = [_SEGMENT.unpack_from(data, fields[5] + n * fields[9]) for n in range(fields[10])]
        rows = [_SECTION.unpack_from(data, fields[6] + n * fields[11]) for n in range(fields[12])]
        self._sections = [_Section(row[1], row[3], row[4], row[5], row[6]) for row in rows]

    @cached_property
    def kernels(self) -> dict[str, KernelMetadata]:
        """Metadata by the name of the kernel."""
        found: dict[str, KernelMetadata] = {}
        for note in self._metadata_notes():
            decoded = msgspec.msgpack.decode(note, type=_CodeMetadata)
            found |= {kernel.name: kernel for kernel in decoded.kernels}
        return found

    @cached_property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """Address and size of every defined symbol."""
        return {name: place for name, place, defined in self._symbols(_SYMBOLS, _DYNAMIC_SYMBOLS) if defined}

    def descriptor(self, kernel: KernelMetadata) -> Descriptor:
        """Decode the kernel descriptor behind `kernel.symbol`."""
        address = self.symbols[kernel.symbol][0]
        raw = bytes(self.image[address : address + 64])
        entry = struct.unpack_from("<q", raw, 16)[0]
        rsrc1, rsrc2 = struct.unpack_from("<II", raw, 48)
        properties, preload = struct.unpack_from("<HH", raw, 56)
        return Descriptor(address + entry, rsrc1, rsrc2, properties, preload & 0x7F, preload >> 7)

    @cached_property
    def image(self) -> np.ndarray:
        """Bytes of all loaded segments at their virtual addresses, unrelocated; address 0 is index 0."""
        loads = [segment for segment in self._segments if segment[0] == _LOAD]
        if not loads:
            raise CodeObjectError("no segment is loaded")
        image = np.zeros(max(segment[3] + segment[6] for segment in loads), np.uint8)
        for _, _, offset, address, _, size, _, _ in loads:
            image[address : address + size] = np.frombuffer(self.data, np.uint8, size, offset)
        return image

    def load(self) -> np.ndarray:
        """Return a page-aligned copy of the image with relocations applied for the address that it lies at."""
        size = len(self.image)
        room = np.zeros(size + _PAGE, np.uint8)
        start = -room.ctypes.data % _PAGE
        loaded: np.ndarray = room[start : start + size]
        loaded[:] = self.image
        base = loaded.ctypes.data
        for where, info, addend in self._relocations():
            kind, symbol = info & 0xFFFFFFFF, info >> 32
            target = addend + base if kind == _RELATIVE64 else addend + base + self._dynamic_values[symbol]
            _relocate(loaded, where, kind, target, base + where)
        return loaded

    @cached_property
    def _dynamic_values(self) -> list[int]:
        return [place[0] for _, place, _ in self._symbols(_DYNAMIC_SYMBOLS, with_null=True)]

    def _relocations(self) -> Iterator[tuple[int, int, int]]:
        for section in self._sections:
            if section.kind == _RELOCATIONS and section.address:
                yield from _RELOCATION.iter_unpack(self.data[section.offset : section.offset + section.size])

    def _symbols(self, *kinds: int, with_null: bool = False) -> Iterator[tuple[str, tuple[int, int], bool]]:
        for section in self._sections:
            if section.kind not in kinds:
                continue
            texts = self._sections[section.link]
            names = self.data[texts.offset : texts.offset + texts.size]
            rows = _SYMBOL.iter_unpack(self.data[section.offset : section.offset + section.size])
            for number, (name, _, _, index, value, size) in enumerate(rows):
                if number or with_null:
                    yield names[name : names.index(b"\0", name)].decode(), (value, size), index != 0

    def _metadata_notes(self) -> Iterator[bytes]:
        for section in self._sections:
            if section.kind == _NOTES:
                yield from _notes(self.data[section.offset : section.offset + section.size])


def _notes(section: bytes) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(section):
        name_bytes, content_bytes, kind = struct.unpack_from("<III", section, at)
        content = at + 12 + -(-name_bytes // 4) * 4
        if kind == _METADATA_NOTE:
            yield section[content : content + content_bytes]
        at = content + -(-content_bytes // 4) * 4


def _relocate(image: np.ndarray, where: int, kind: int, target: int, place: int) -> None:
    if kind in (_RELATIVE64, _ABS64):
        image[where : where + 8] = np.frombuffer(struct.pack("<Q", target & (1 << 64) - 1), np.uint8)
    elif kind == _REL64:
        image[where : where + 8] = np.frombuffer(struct.pack("<Q", (target - place) & (1 << 64) - 1), np.uint8)
    elif kind in (_ABS32_LO, _ABS32_HI, _REL32):
        value = {_ABS32_LO: target, _ABS32_HI: target >> 32, _REL32: target - place}[kind]
        image[where : where + 4] = np.frombuffer(struct.pack("<I", value & 0xFFFFFFFF), np.uint8)
    else:
        raise CodeObjectError(f"relocation of type {kind} is not known")


def bundled(library: bytes, arch: str) -> list[bytes]:
    """Return the code objects for `arch` in what clang embeds in a host library; compressed bundles are not read."""
    found, at = [], library.find(_BUNDLE)
    while at >= 0:
        (count,) = struct.unpack_from("<Q", library, at + len(_BUNDLE))
        entry = at + len(_BUNDLE) + 8
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", library, entry)
            target = library[entry + 24 : entry + 24 + length].decode()
            entry += 24 + length
            if size and arch in target.split("-"):
                found.append(library[at + offset : at + offset + size])
        at = library.find(_BUNDLE, at + len(_BUNDLE))
    return found
