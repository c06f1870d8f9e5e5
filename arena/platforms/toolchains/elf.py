"""A strict reader of 64-bit little-endian ELF files: sections and symbols of objects, dynamic entries of libraries.

The files were made from untrusted sources, so every offset and count is checked before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

RELOCATABLE, PROGRAM, LIBRARY = 1, 2, 3
EXECUTABLE = 0x4
OBJECT_SYMBOL, INDIRECT_SYMBOL = 1, 10
LOCAL, WEAK = 0, 2
_MACHINES = (62, 183)  # x86-64, aarch64
_IDENTITY = b"\x7fELF\x02\x01\x01"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")
_LOAD, _DYNAMIC_SEGMENT = 1, 2
_SYMBOL_TABLE, _NO_BITS = 2, 8
_UNDEFINED, _FIRST_RESERVED, _INDEX_ELSEWHERE = 0, 0xFF00, 0xFFFF
_MOST_BYTES = 1 << 30


class ElfError(ValueError):
    """The file is not what a compiler or linker makes."""


class Tag(IntEnum):
    """Entries of a dynamic section that the harness reads."""

    NULL = 0
    NEEDED = 1
    STRTAB = 5
    STRSZ = 10
    SONAME = 14
    FLAGS = 30
    FLAGS_1 = 0x6FFFFFFB


@dataclass(frozen=True)
class Section:
    """One section: name, type, flags, and where its bytes lie in the file."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class Symbol:
    """One symbol; `section` is None where it has none in this file: undefined, absolute, common."""

    name: str
    binding: int
    kind: int
    undefined: bool
    section: Section | None


class Elf:
    """One file, read whole. Every method raises `ElfError` where the file does not hold what it claims."""

    def __init__(self, path: Path, *kinds: int) -> None:
        """`kinds`: which of `RELOCATABLE`, `PROGRAM` and `LIBRARY` it may be; most programs are made as libraries."""
        if path.stat().st_size > _MOST_BYTES:
            raise ElfError(f"{path.name} has more than {_MOST_BYTES} bytes")
        self._data = path.read_bytes()
        fields = _HEADER.unpack(self._bytes(0, _HEADER.size))
        identity, found, machine = fields[0], fields[1], fields[2]
        if not identity.startswith(_IDENTITY) or found not in kinds or machine not in _MACHINES:
            raise ElfError(
                f"{path.name} is no ELF file of type {' or '.join(map(str, kinds))} for this kind of machine"
            )
        self._segments_at, self._sections_at = fields[5], fields[6]
        self._segment_size, self._segment_count, self._section_size, self._section_count, self._names = fields[9:14]

    def sections(self) -> list[Section]:
        """Every section, the empty first one included."""
        rows = list(self._table(_SECTION, self._sections_at, self._section_count, self._section_size))
        if not rows:
            return []
        if self._names >= len(rows):
            raise ElfError("the names of the sections are in no section")
        texts = self._bytes(rows[self._names][4], rows[self._names][5])
        return [
            Section(_text(texts, name), kind, flags, offset, size, link)
            for name, kind, flags, _, offset, size, link, _, _, _ in rows
        ]

    def symbols(self) -> list[Symbol]:
        """Every symbol of the symbol table, without the empty first one."""
        sections = self.sections()
        found: list[Symbol] = []
        for table in (section for section in sections if section.kind == _SYMBOL_TABLE):
            if table.link >= len(sections) or table.size % _SYMBOL.size:
                raise ElfError(f"the symbol table {table.name} has no names, or half a symbol")
            texts = self._bytes(sections[table.link].offset, sections[table.link].size)
            data = self._bytes(table.offset, table.size)
            for name, info, _, index, _, _ in list(_SYMBOL.iter_unpack(data))[1:]:
                found.append(_symbol(_text(texts, name), info, index, sections))
        return found

    def dynamic(self) -> list[tuple[int, int]]:
        """Tags and values of the dynamic section, as the loader finds it: by the program headers."""
        segments = list(self._table(_SEGMENT, self._segments_at, self._segment_count, self._segment_size))
        dynamic = [segment for segment in segments if segment[0] == _DYNAMIC_SEGMENT]
        if len(dynamic) != 1:
            raise ElfError(f"{len(dynamic)} dynamic segments, expected one")
        _, _, offset, address, _, size, _, _ = dynamic[0]
        if self._offset(address, size) != offset or size % _DYNAMIC.size:
            raise ElfError("the dynamic segment lies elsewhere in memory than in the file")
        entries = list(_DYNAMIC.iter_unpack(self._bytes(offset, size)))
        ends = [index for index, (tag, _) in enumerate(entries) if tag == Tag.NULL]
        if not ends:
            raise ElfError("the dynamic section has no end")
        return entries[: ends[0]]

    def texts(self, entries: list[tuple[int, int]], wanted: int) -> list[str]:
        """Values of the dynamic entries with this tag, read from the dynamic string table."""
        known = dict(entries)
        if Tag.STRTAB not in known or Tag.STRSZ not in known:
            raise ElfError("the dynamic section has no string table")
        size = known[Tag.STRSZ]
        texts = self._bytes(self._offset(known[Tag.STRTAB], size), size)
        return [_text(texts, value) for tag, value in entries if tag == wanted]

    def _offset(self, address: int, size: int) -> int:
        """Where bytes of memory are in the file."""
        segments = self._table(_SEGMENT, self._segments_at, self._segment_count, self._segment_size)
        for kind, _, offset, first, _, in_file, _, _ in segments:
            if kind == _LOAD and first <= address and address + size <= first + in_file:
                return int(offset + address - first)
        raise ElfError(f"no segment holds {size} bytes at {address:#x}")

    def _table(self, row: struct.Struct, offset: int, count: int, size: int) -> Iterator[tuple[int, ...]]:
        if count and size != row.size:
            raise ElfError(f"rows of {size} bytes, expected {row.size}")
        return row.iter_unpack(self._bytes(offset, count * row.size))

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset < 0 or size < 0 or offset + size > len(self._data):
            raise ElfError(f"{size} bytes at {offset} lie outside of the file")
        return self._data[offset : offset + size]


def linked_names(path: Path, wanted: Tag) -> list[str]:
    """Return the names of this tag in a program or library, such as `Tag.NEEDED`. Raises `ElfError`."""
    file = Elf(path, PROGRAM, LIBRARY)
    return file.texts(file.dynamic(), wanted)


def _symbol(name: str, info: int, index: int, sections: list[Section]) -> Symbol:
    # A file with more sections than an index can tell keeps them elsewhere; no kernel file has so many.
    if index == _INDEX_ELSEWHERE or (index < _FIRST_RESERVED and index >= len(sections)):
        raise ElfError(f"`{name}` is in section {index}, and there are {len(sections)}")
    section = sections[index] if _UNDEFINED < index < _FIRST_RESERVED else None
    return Symbol(name, info >> 4, info & 0xF, index == _UNDEFINED, section)


def _text(texts: bytes, at: int) -> str:
    end = texts.find(b"\0", at) if 0 <= at < len(texts) else -1
    if end < 0:
        raise ElfError(f"no name at {at} of {len(texts)} bytes of names")
    return texts[at:end].decode("utf-8", "replace")
