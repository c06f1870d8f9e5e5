"""Files of hostile origin: whatever they claim, reading them ends in an answer or in `ElfError`."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from arena.platforms.toolchains.elf import LIBRARY, RELOCATABLE, Elf, ElfError, Tag

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("elf")
    text = "extern int strong(); __attribute__((weak)) int weak(); int f() { return strong() + weak(); }"
    (folder / "a.cpp").write_text(text, encoding="utf-8")
    for arguments in (["-c", "-o", "a.o"], ["-shared", "-Wl,--no-as-needed", "-o", "a.so"]):
        subprocess.run(["g++", "-fPIC", "a.cpp", *arguments], cwd=folder, check=True)
    return folder / "a.o", folder / "a.so"


def test_an_object_tells_its_symbols(files: tuple[Path, Path]) -> None:
    symbols = {symbol.name: symbol for symbol in Elf(files[0], RELOCATABLE).symbols()}
    assert {name for name, symbol in symbols.items() if symbol.undefined} >= {"_Z6strongv", "_Z4weakv"}
    section = symbols["_Z1fv"].section
    assert section is not None and section.name == ".text"


def test_a_library_tells_what_it_needs(files: tuple[Path, Path]) -> None:
    library = Elf(files[1], LIBRARY)
    assert "libc.so.6" in library.texts(library.dynamic(), Tag.NEEDED)


def test_another_kind_of_file_is_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    for path, kind in ((files[0], LIBRARY), (files[1], RELOCATABLE)):
        with pytest.raises(ElfError, match="no ELF file of type"):
            Elf(path, kind)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ElfError, match="outside of the file"):
        Elf(tmp_path / "empty", LIBRARY)


def test_files_that_were_tampered_with_never_do_more_than_raise(files: tuple[Path, Path], tmp_path: Path) -> None:
    dice = random.Random(7)
    for path, kind in zip(files, (RELOCATABLE, LIBRARY), strict=True):
        whole, tampered, raised = path.read_bytes(), tmp_path / path.name, 0
        for _ in range(400):
            data = bytearray(whole)
            for _ in range(dice.randint(1, 8)):
                at = dice.randrange(16, 64) if dice.random() < 0.5 else dice.randrange(len(data) - 8)
                value = dice.choice([0, 1, 0xFFFF, 0xFFFFFFFF, 1 << 63, dice.getrandbits(64)])
                form, mask = dice.choice([("<Q", 2**64 - 1), ("<H", 0xFFFF)])
                struct.pack_into(form, data, min(at, len(data) - 8), value & mask)
            tampered.write_bytes(bytes(data[: dice.randrange(len(data))]) if dice.random() < 0.3 else bytes(data))
            try:
                elf = Elf(tampered, kind)
                elf.symbols()
                elf.texts(elf.dynamic(), Tag.NEEDED)
            except ElfError:
                raised += 1
        assert raised > 100
