"""What the HIP-on-CPU build says: errors with the candidate's own lines, and which names the header lacks."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from arena.platforms.cpu.hip.diagnosis import MOST_LINES, explain
from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.toolchains.base import BuildFailed, Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_compilers import find
from arena.platforms.toolchains.kernel_library import inlined

needs_compiler = pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine")
HEADER = """#pragma once
#include <stdint.h>
#include <hip/hip_runtime.h>
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream);
"""
RIGHT = """#include "task.h"
__global__ void k(const float* x, float* y, int n) {
    y[threadIdx.x] = x[threadIdx.x];  // HERE
}
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream) {
    k<<<1, 32, 0, stream>>>(x, y, n);
    return hipGetLastError();
}
"""
MISSING = "the HIP-on-CPU header does not provide"


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> HipCpuToolchain:
    return HipCpuToolchain(BuildCache(tmp_path_factory.mktemp("builds")))


def failed(toolchain: HipCpuToolchain, kernel: str, wave_size: int = 32) -> str:
    result = toolchain.build(Source(kernel, HEADER), Target("cpu", wave_size))
    assert isinstance(result, BuildFailed)
    assert not result.timed_out
    return result.log


@needs_compiler
@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("y[0] = __builtin_amdgcn_rcpf(x[0]);", "`__builtin_amdgcn_rcpf`"),
        ("__made_up_intrinsic(3);", "`__made_up_intrinsic`"),
        ('asm volatile("v_nop");', "`inline assembly`"),
        ("hipLaunchCooperativeKernel(0, 1, 1, 0, 0, 0);", "`hipLaunchCooperativeKernel`"),
    ],
)
def test_unknown_names_of_hip_are_said_in_the_last_line(toolchain: HipCpuToolchain, statement: str, name: str) -> None:
    last = failed(toolchain, RIGHT.replace("// HERE", statement)).splitlines()[-1]
    assert last == f"kernel.hip:3: {MISSING} {name}; this may still build for a GPU target"


@needs_compiler
def test_errors_name_the_candidates_lines(toolchain: HipCpuToolchain) -> None:
    log = failed(
        toolchain, RIGHT.replace("// HERE", "int a = ;").replace("return hip", "undeclared_name(); return hip")
    )
    assert "kernel.hip:3:" in log
    assert "kernel.hip:7:" in log
    assert MISSING not in log
    assert "\n    3 |     y[threadIdx.x] = x[threadIdx.x];  int a = ;" in log


CANDIDATE = RIGHT.replace('"task.h"', '"task.h"\n#include "block.h"')
LAUNCH = "k<<<1, 32, 0, stream>>>(x, y, n);"


@needs_compiler
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            "// HERE",
            "y[0] = block_sum(threds);",
            """kernel.hip:4: error: 'threds' was not declared in this scope
    4 |     y[threadIdx.x] = x[threadIdx.x];  y[0] = block_sum(threds);
""",
        ),
        (
            "// HERE",
            "y[0] = block_sum(x[0], 3);",
            """kernel.hip:4: error: too many arguments to function 'float block_sum(float)'
    4 |     y[threadIdx.x] = x[threadIdx.x];  y[0] = block_sum(x[0], 3);
block.h:29: note: declared here
   29 | __device__ inline float block_sum(float value) { return over_block(value, Sum()); }
""",
        ),
        (
            '#include "block.h"',
            "#include <nowhere.h>",
            """kernel.hip:2: fatal error: nowhere.h: No such file or directory
    2 | #include <nowhere.h>
""",
        ),
        (
            "y, int64_t n",
            "y, int n",
            """kernel.hip:6: error: conflicting declaration of C function \
'hipError_t entry(const float*, float*, int, hipStream_t)'
    6 | extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
task.h:4: note: previous declaration 'hipError_t entry(const float*, float*, int64_t, hipStream_t)'
    4 | extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream);
""",
        ),
        (
            "__global__ void k(const float* x, float* y, int n) {",
            'template <typename E> __global__ void k(const E* x, E* y, int n) { E bad = "text";',
            """kernel.hip:3: error: cannot convert 'const char*' to 'float' in initialization
    3 | template <typename E> __global__ void k(const E* x, E* y, int n) { E bad = "text";
in instantiation of 'void k(const E*, E*, int) [with E = float]'
kernel.hip:7: from here
    7 |     k<<<1, 32, 0, stream>>>(x, y, n);
""",
        ),
        (
            '#include "task.h"',
            "",
            """block.h:7: error: '__device__' does not name a type
    7 |     __device__ float operator()(float a, float b) const { return a + b; }
""",
        ),
        ("return hip", "elsewhere(); return hip", "error: undefined reference to `elsewhere()'\n"),
    ],
)
def test_real_mistakes_are_told_by_the_candidates_own_lines(
    toolchain: HipCpuToolchain, right: str, wrong: str, said: str
) -> None:
    kernel = inlined(CANDIDATE.replace(right, wrong), "kernel.hip")
    log = failed(toolchain, kernel if "elsewhere" not in wrong else f"void elsewhere();\n{kernel}")
    assert log.startswith(said)
    if not wrong:
        assert 'block.h:7: names of HIP are unknown here: `#include "task.h"` must come before their first use' in log
    else:
        assert log == said


@needs_compiler
def test_a_missing_semicolon_shows_the_line_that_lacks_it(toolchain: HipCpuToolchain) -> None:
    log = failed(toolchain, RIGHT.replace(LAUNCH, LAUNCH[:-1]))
    assert log.splitlines()[:2] == [
        "kernel.hip:6: error: expected ';' before 'return'",
        "    6 |     k<<<1, 32, 0, stream>>>(x, y, n)",
    ]


@needs_compiler
def test_many_errors_fill_twenty_lines_and_name_no_path(toolchain: HipCpuToolchain) -> None:
    many = "\n".join(f"name_{number} += __intrinsic_{number}();" for number in range(40))
    result = toolchain.build(Source(RIGHT.replace("// HERE", many), HEADER), Target("cpu"))
    assert isinstance(result, BuildFailed) and "'name_39' was not declared" in result.printed
    lines = result.log.splitlines()
    assert len(lines) <= MOST_LINES
    assert any(line.startswith("… ") and line.endswith(" more") for line in lines)
    assert MISSING in lines[-1]
    library = "struct Z {}; Z all[3]; std::sort(all, all + 3); return hip"
    log = failed(toolchain, "#include <algorithm>\n" + RIGHT.replace("return hip", library))
    assert "error: no match for 'operator<'" in log and "kernel.hip:8: from here\n    8 |     struct Z" in log
    assert len(log.splitlines()) <= MOST_LINES
    assert not re.search(r"(?<![\w<*&])/\w", log), log


@needs_compiler
def test_warnings_show_the_candidates_lines(toolchain: HipCpuToolchain) -> None:
    built = toolchain.build(Source(RIGHT.replace("// HERE", "y[0] = 1 / 0;"), HEADER), Target("cpu"))
    assert isinstance(built, Built)
    said = "kernel.hip:3: warning: division by zero [-Wdiv-by-zero]\n    3 |     y[threadIdx.x] = x[threadIdx.x];  y[0]"
    assert built.log.startswith(said)


def test_what_is_no_message_of_a_compiler_is_kept() -> None:
    log = "warned.hip:3:1: warning: unused\nvirtual memory exhausted: Cannot allocate memory\n"
    assert explain(log) == log
    killed = "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n"
    assert explain(killed) == killed.splitlines()[0] + "\n"


@needs_compiler
def test_a_wrong_signature_conflicts_with_task_h(toolchain: HipCpuToolchain) -> None:
    log = failed(toolchain, RIGHT.replace("int64_t n", "int n"))
    assert "conflicting declaration" in log


@needs_compiler
def test_a_32_bit_mask_is_refused_at_wave_size_64(toolchain: HipCpuToolchain) -> None:
    kernel = RIGHT.replace("// HERE", "y[0] = __shfl_xor_sync(0xffffffff, x[0], 1);")
    assert isinstance(toolchain.build(Source(kernel, HEADER), Target("cpu", 32)), Built)
    assert "The mask must be a 64-bit integer" in failed(toolchain, kernel, 64)


@needs_compiler
def test_the_same_source_is_built_once_per_target(tmp_path: Path) -> None:
    toolchain = HipCpuToolchain(BuildCache(tmp_path))
    first = toolchain.build(Source(RIGHT, HEADER), Target("cpu"))
    again = HipCpuToolchain(BuildCache(tmp_path)).build(Source(RIGHT, HEADER), Target("cpu"))
    other = toolchain.build(Source(RIGHT, HEADER), Target("cpu", 64))
    assert isinstance(first, Built) and isinstance(again, Built) and isinstance(other, Built)
    assert [result.cached for result in (first, again, other)] == [False, True, False]
    assert first.library == again.library != other.library
    assert not list((tmp_path / "staging").iterdir())


@needs_compiler
def test_a_build_that_takes_too_long_fails_as_a_value(toolchain: HipCpuToolchain) -> None:
    result = toolchain.build(Source(RIGHT + "\n// late", HEADER), Target("cpu"), timeout_s=0.01)
    assert isinstance(result, BuildFailed)
    assert result.timed_out


def test_other_targets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a CPU target"):
        HipCpuToolchain(BuildCache(tmp_path)).build(Source("", ""), Target("cpu", 16))


def test_a_mistake_of_the_candidates_own_is_not_blamed_on_the_header() -> None:
    log = "kernel.hip:3:5: error: 'colum' was not declared in this scope\n"
    assert explain(log) == log.replace(":5:", ":")


def test_every_missing_name_is_listed_once() -> None:
    log = (
        "kernel.hip:9:5: error: '__one' was not declared in this scope; did you mean '__ones'?\n"
        "kernel.hip:12:5: error: there are no arguments to 'hipTwo' that depend on a template parameter, so\n"
        "kernel.hip:14:5: error: '__one' was not declared in this scope\n"
        "kernel.hip:2:10: fatal error: rocwmma/rocwmma.hpp: No such file or directory\n"
    )
    last = explain(log).splitlines()[-1]
    assert last.startswith(f"kernel.hip:9: {MISSING} `__one`, `hipTwo`, `rocwmma/rocwmma.hpp`;")


@pytest.mark.parametrize("line", [f"int q = {'/' * 100_000};", f"k.hip:1:9: error: '{'a' * 100_000}' was not declared"])
def test_a_long_line_of_a_compiler_is_explained_at_once(line: str) -> None:
    """A name of a mebibyte took six minutes."""
    began = time.process_time()
    said = explain(f"{line}\n   31 | int q = {'a' * 100_000};\n", {"k.hip": "int q;"})
    assert said and time.process_time() - began < 5.0
