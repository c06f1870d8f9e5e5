"""Names that go on as assembly, in what a preprocessor has left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.toolchains.base import Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_reads import probe
from arena.platforms.toolchains.hip_symbols import broken_rules
from arena.platforms.toolchains.hip_texts import note_odd_names, odd_names

ODD = (
    r'__attribute__((section(".data\n\t.text"))) int x;',
    '__attribute__ ( ( used, __section__ ( "a" R"(\n)" ) ) ) int x;',
    '[ [gnu::section("a;b")] ] int x;',
    '<:<:gnu::alias("a\\x0a b"):>:> void f();',
    r'void f() __asm("f\12");',
    r'int y = a[[] { extern int x asm("x\n"); return x; }()];',
    "#pragma it's \" not closed\n" r'int x __asm__("x\n");',
    "int n = 1'000; char c = '\"'; " r'int x asm("x\n");',
)
FINE = (
    'extern int x __asm__("" "__isoc99_sscanf");',
    'asm volatile("" ::: "memory");',
    '__attribute__((section(".text.hot"))) void f() { puts("a;\\n"); }',
    '__attribute__((deprecated("a; b\\n"))) int other;',
    r'const char* text = "__attribute__((section(\"a\\n\")))"; int b = a[[] { return "\n"[0]; }()];',
)


@pytest.mark.parametrize("text", ODD)
def test_what_is_more_than_a_name_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "kernel.ii").write_text(text)
    note_odd_names(tmp_path)
    assert len(odd_names(tmp_path / "kernel.so")) == 1
    assert not list(tmp_path.glob("*.ii")), "it would be kept with the build"


@pytest.mark.parametrize("text", FINE)
def test_names_and_other_texts_are_let_be(tmp_path: Path, text: str) -> None:
    (tmp_path / "kernel.ii").write_text(text)
    note_odd_names(tmp_path)
    assert odd_names(tmp_path / "kernel.so") == []


@pytest.mark.slow
@pytest.mark.parametrize("quote", ['"', "'"])
def test_open_literals_of_a_pragma_are_read_once(tmp_path: Path, quote: str) -> None:
    """Compilers warn of them, and a mebibyte of them took an hour."""
    (tmp_path / "kernel.ii").write_text(f"#pragma x {quote}" + f"\\{quote}" * 60_000 + "\nint x;\n")
    began = time.process_time()
    note_odd_names(tmp_path)
    assert time.process_time() - began < 10.0
    assert odd_names(tmp_path / "kernel.so") == []


@pytest.mark.slow
def test_a_build_is_refused_for_it_and_no_documented_header_has_it(tmp_path: Path) -> None:
    toolchain = HipCpuToolchain(BuildCache(tmp_path))
    called = "#define CALLED(x) __attribute__((section(x)))\n"
    odd = called + 'CALLED(".data\\n\\t.byte 15, 5\\n\\t.section .data") int there = 1;'
    made = toolchain.build(Source(odd, "", "kernel.hip"), Target("cpu", 32))
    assert isinstance(made, Built)
    assert any(
        "which the assembler would read as more than a name" in rule for rule in broken_rules(made.library, "cpu")
    )
    built = toolchain.build(Source(probe(), "#pragma once\n", "probe.hip"), Target("cpu", 32))
    assert isinstance(built, Built)
    assert odd_names(built.library) == []
    assert not list(built.library.parent.glob("*.ii"))
