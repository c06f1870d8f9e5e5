"""What compilers read decides which headers a HIP candidate has used, however its text names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.errors import InfrastructureError
from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.cross import compilers as cross
from arena.platforms.toolchains.base import Built, HipToolchain, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_compilers import find
from arena.platforms.toolchains.hip_reads import READS_NAME, Readable, collect, forbidden_reads
from arena.platforms.toolchains.targets import TARGETS

HEADER = "#pragma once\n#include <hip/hip_runtime.h>\n"
FOREIGN = Path("/usr/include/boost/version.hpp")
HONEST = """#include "task.h"
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <stdio.h>
#include <unistd.h>
#include <hip/hip_bf16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp8.h>
__global__ void k(float* y) { y[threadIdx.x] = 1.0f; }
"""
ABLE = {
    "cpu": not find()[0].missing,
    "sm_90": any("sm_90" in one.targets for one in cross.abilities() if one.language == "hip"),
    "gfx942": any("gfx942" in one.targets for one in cross.abilities() if one.language == "hip"),
}
ARCHS = [pytest.param(arch, marks=pytest.mark.skipif(not able, reason="no compiler")) for arch, able in ABLE.items()]
needs_foreign = pytest.mark.skipif(not FOREIGN.is_file(), reason="no library's headers on this machine")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("builds")


def said(arch: str, kernel: str, cache: Path) -> list[str]:
    """What is said of a build that succeeds."""
    target = Target(arch, 32 if arch == "cpu" else TARGETS[arch].wave_size)
    toolchain: HipToolchain = HipCpuToolchain(BuildCache(cache))
    if arch != "cpu":
        toolchain = cross.hip_cross_toolchain(arch, cache)
    built = toolchain.build(Source(kernel, HEADER), target)
    assert isinstance(built, Built), built.log
    return forbidden_reads(built.library, toolchain, target)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_documented_headers_may_be_read(arch: str, cache: Path) -> None:
    assert said(arch, "#define _GNU_SOURCE 1\n#define NDEBUG\n#define _GLIBCXX_ASSERTIONS\n" + HONEST, cache) == []


@pytest.mark.slow(but=["cpu"])
@needs_foreign
@pytest.mark.parametrize("arch", ARCHS)
def test_every_way_to_include_is_seen(arch: str, cache: Path) -> None:
    device = {"cpu": "HIP_CPU_WAVE_SIZE", "sm_90": "__CUDA_ARCH__"}.get(arch, "__HIP_DEVICE_COMPILE__")
    ways = {
        "version": "%:include <{}>",
        "config": "#define HEADER <{}>\n#include HEADER",
        "assert": "#include_next <{}>",
        "current_function": "#inc\\\nlude <{}>",
        "static_assert": "#import <{}>",
        "limits": "/* */ # /* */ include /* */ <{}>",
        "cstdint": "#if __has_include(<{}>)\n#include <{}>\n#endif",
        "throw_exception": '#include "/usr/include/boost/../{}"',
        "array": f"#ifdef {device}\n%:include <{{}}>\n#endif",
        "cerrno": f"#ifndef {device if arch != 'cpu' else 'NEVER'}\n%:include <{{}}>\n#endif",
    }
    text = "\n".join(way.replace("{}", f"boost/{name}.hpp") for name, way in ways.items())
    reasons = "\n".join(said(arch, f"{text}\n{HONEST}", cache))
    for name in ways:
        assert f"read `/usr/include/boost/{name}.hpp`, no documented header; task.h, block.h, " in reasons


@pytest.mark.slow
@pytest.mark.skipif(not ABLE["sm_90"], reason="no compiler")
def test_kernel_libraries_of_cuda_are_none_of_its_runtime(cache: Path) -> None:
    assert any("/cub/" in one for one in said("sm_90", f"%:include <cub/block/block_reduce.cuh>\n{HONEST}", cache))


@pytest.mark.slow
@pytest.mark.skipif(not ABLE["sm_90"], reason="no compiler")
def test_what_the_assembler_reads_is_seen(cache: Path, tmp_path: Path) -> None:
    files = {directive: tmp_path / f"{directive}.s" for directive in ("incbin", "include")}
    for file in files.values():
        file.write_text("\n")
    put = "".join(f'm {directive} \\"{file}\\"\\n' for directive, file in files.items())
    text = f'__asm__(".section .rodata\\n.macro m a b\\n.\\\\a \\"\\\\b\\"\\n.endm\\n{put}.previous");\n'
    reasons = "\n".join(said("sm_90", text + HONEST, cache))
    assert all(f"the assembler was made to read `{file}`" in reasons for file in files.values())


def test_a_compiler_that_does_not_say_what_it_read_is_no_pass(tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    library.touch()
    toolchain = HipCpuToolchain(BuildCache(tmp_path))
    with pytest.raises(InfrastructureError, match="did not say which headers"):
        forbidden_reads(library, toolchain, Target("cpu"))
    (tmp_path / READS_NAME).touch()
    with pytest.raises(InfrastructureError, match="did not say which headers"):
        forbidden_reads(library, toolchain, Target("cpu"))


def test_what_was_noted_is_read_as_make_writes_it(tmp_path: Path) -> None:
    folder, work, scratch = (tmp_path / name for name in ("result", "work", "tmp"))
    for one in (folder, work, scratch):
        one.mkdir()
    (folder / "reads.gcc").write_text(
        f"a.o: kernel.hip {scratch}/cc1.s \\\n /a/b\\ c.h \\\n /d.h\nb.o: {work}/task.h /d.h\n"
    )
    (folder / "reads.clang").write_text("/e f.h\n")
    assert collect(folder, work, scratch).splitlines() == ["/a/b c.h", "/d.h", "/e f.h"]
    assert not list(folder.iterdir())


def test_a_folder_is_whole_only_where_it_holds_one_language() -> None:
    read = ("/usr/include/math.h", "/usr/include/c++/12/vector", "/usr/include/x86_64-linux-gnu/bits/types.h")
    readable = Readable.of(read)
    assert readable.foreign([*read, "/usr/include/c++/12/deque", "/usr/include/x86_64-linux-gnu/bits/x.h"]) == []
    others = ["/usr/include/cblas.h", "/usr/include/c++/12x/vector", "/usr/include/x86_64-linux-gnu/cublas.h"]
    assert readable.foreign(others) == others
