"""HIP on the CPU runs real kernels: one library of many entries, at wave size 32 and 64."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.toolchains.base import Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_compilers import find

pytestmark = [
    pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine"),
]

HEADER = """#pragma once
#include <stdint.h>
#include <hip/hip_runtime.h>
extern "C" hipError_t scale(const float* x, float* y, int64_t n, hipStream_t stream);
"""
KERNELS = Path(__file__).with_name("test_hip_kernels.hip")
INVALID_VALUE, INVALID_CONFIGURATION = 1, 9


class Library:
    """Calls entries by name: arrays go as pointers, integers as int64, and the null stream comes last."""

    def __init__(self, path: Path, runtime: Path, wave_size: int) -> None:
        self.path, self.runtime = path, runtime
        self.wave_size = wave_size
        ctypes.CDLL(str(runtime), ctypes.RTLD_GLOBAL)  # as a worker has, before any candidate
        self._library = ctypes.CDLL(str(path))

    def status(self, entry: str, *arguments: np.ndarray | int) -> int:
        passed: list[object] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                passed.append(ctypes.c_void_p(argument.ctypes.data))
            else:
                passed.append(ctypes.c_int64(argument))
        return int(getattr(self._library, entry)(*passed, ctypes.c_void_p(None)))

    def call(self, entry: str, *arguments: np.ndarray | int) -> None:
        assert self.status(entry, *arguments) == 0


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Library]:
    toolchain = HipCpuToolchain(BuildCache(tmp_path_factory.mktemp("builds")))
    source = Source(KERNELS.read_text(), HEADER)
    made = {}
    for wave_size in (32, 64):
        built = toolchain.build(source, Target("cpu", wave_size))
        assert isinstance(built, Built), built.log
        assert built.log == ""
        made[wave_size] = Library(built.library, toolchain.runtime, wave_size)
    return made


@pytest.fixture(params=[32, 64], ids=["wave32", "wave64"])
def library(request: pytest.FixtureRequest, libraries: dict[int, Library]) -> Library:
    return libraries[request.param]


@pytest.fixture
def library32(libraries: dict[int, Library]) -> Library:
    return libraries[32]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 255, 256, 100_003])
def test_elementwise(library32: Library, n: int) -> None:
    x, y = normal(n), np.full(n + 1, 5, np.float32)
    library32.call("scale", x, y, n)
    np.testing.assert_array_equal(y[:n], 2 * x)
    assert y[n] == 5


def test_block_reduction_is_the_same_at_both_wave_sizes(library: Library) -> None:
    x, y = normal(512, 1000), np.zeros((512, 1000), np.float32)
    started = time.process_time()
    library.call("layer_norm", x, y, 512, 1000)
    assert time.process_time() - started < 0.5
    centred = x.astype(np.float64) - x.mean(1, keepdims=True, dtype=np.float64)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_a_kernel_that_assumes_32_lanes_fails_at_64(libraries: dict[int, Library]) -> None:
    x, y = normal(256), np.zeros(1, np.float32)
    libraries[32].call("assumes_32", x, y)
    np.testing.assert_allclose(y[0], x.sum(), rtol=1e-4)
    libraries[64].call("assumes_32", x, y)
    assert not np.isclose(y[0], x.sum(), rtol=1e-4)


def test_tiled_matmul_with_2d_shared_arrays(library: Library) -> None:
    a, b, c = normal(37, 53), normal(53, 41), np.zeros((37, 41), np.float32)
    library.call("matmul", a, b, c, 37, 41, 53)
    np.testing.assert_allclose(c, a @ b, atol=1e-4)


def test_dynamic_shared_memory_is_one_array_under_every_name(library32: Library) -> None:
    x = np.arange(3 * 1024, dtype=np.int32)
    expected = x.reshape(3, 1024)[:, ::-1].ravel().copy()
    library32.call("reverse", x, 3, 1024, 4096)
    np.testing.assert_array_equal(x, expected)


def test_atomics_across_blocks(library: Library) -> None:
    x = np.random.default_rng(3).integers(0, 16, 200_000, dtype=np.int32)
    counts, total = np.full(16, 9, np.uint32), np.full(1, 9, np.float32)
    library.call("histogram", x, counts, total, x.size)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=16))
    assert total[0] == x.size


def test_every_kind_of_atomic(library32: Library) -> None:
    out = np.array([0, 0, 0, 255, 0, 0, 0, 0], np.int32)
    judge_pool, wide = np.zeros(2, np.uint32), np.zeros(1, np.uint64)
    library32.call("atomics", out, judge_pool, wide)
    parity = int(np.bitwise_xor.reduce(np.arange(100)))
    np.testing.assert_array_equal(out, [99, -99, 255, 0, parity, -100, 200, 99])
    np.testing.assert_array_equal(judge_pool, [0, 0])
    assert wide[0] == 100 << 33


@pytest.mark.parametrize("n", [1, 31, 40, 200])
def test_threads_that_returned_do_not_count(library: Library, n: int) -> None:
    x, y = normal(256), np.zeros(512, np.float32)
    library.call("early_exit", x, y, n)
    np.testing.assert_allclose(y[:n], x[:n][::-1] + 1000.0 * n)
    for lane in range(n):
        last_of_wave = lane % library.wave_size == library.wave_size - 1
        source = lane if last_of_wave else lane + 1
        assert y[n + lane] == (x[source] if source < n else 0)


def test_diverged_lanes_meet_in_groups(library: Library) -> None:
    out = np.zeros(96, np.uint64)
    library.call("diverge", out)
    even = sum(1 << i for i in range(0, 8, 2))
    odd = sum(1 << i for i in range(25, 32, 2))
    np.testing.assert_array_equal(out[:32], [odd if i % 2 else even for i in range(32)])
    per_lane = {0: 0, 1: 24, 2: 24 + 16, 3: 24 + 16 + 8}
    np.testing.assert_array_equal(out[32:64], [per_lane[i % 4] for i in range(32)])
    np.testing.assert_array_equal(out[64:], [i ^ 1 if i < 16 else i ^ 2 for i in range(32)])


def test_wave_operations(library: Library) -> None:
    out = np.zeros((64, 16), np.int32)
    library.call("wave", out)
    size = library.wave_size
    for i in range(64):
        lane, first = i % size, i // size * size
        wave = range(first, first + size)
        in16, in8 = i // 16 * 16, i // 8 * 8
        assert out[i].tolist() == [
            in8 + 3,
            i - 2 if i - 2 >= in16 else i,
            i + 2 if i + 2 < in16 + 16 else i,
            first + (lane ^ 5),
            int(5 in wave),
            1,
            sum(1 for j in wave if j % 3 == 0),
            lane,
            sum(wave),
            max(wave),
            size // 4,
            size,
            int(first == 0),
            in8 + 2,
            i % 8 + 100 * (i // 8),
            0b111,
        ]


def test_grids_and_blocks_in_three_dimensions(library32: Library) -> None:
    out = np.zeros((4, 3, 2, 3, 2, 5), np.int32)
    library32.call("position", out)
    bz, by, bx, tz, ty, tx = np.indices(out.shape)
    np.testing.assert_array_equal(out, 1000000 * bz + bx + 10 * by + 100 * tx + 1000 * ty + 10000 * tz)


def test_shared_memory_begins_as_poison(library32: Library) -> None:
    out = np.zeros(8, np.float32)
    library32.call("stale", out)
    assert np.isnan(out).all()


def test_arguments_are_evaluated_once(library32: Library) -> None:
    out = np.zeros(3, np.int32)
    library32.call("arguments", out)
    assert out.tolist() == [7, 7, 8]


@pytest.mark.parametrize(
    ("blocks", "threads", "shared", "status"),
    [
        (1, 1025, 0, INVALID_CONFIGURATION),
        (1, 0, 0, INVALID_CONFIGURATION),
        (0, 32, 0, INVALID_CONFIGURATION),
        (1, 32, 65537, INVALID_VALUE),
    ],
)
def test_launch_errors(library32: Library, blocks: int, threads: int, shared: int, status: int) -> None:
    x = np.arange(32, dtype=np.int32)
    assert library32.status("reverse", x, blocks, threads, shared) == status
    np.testing.assert_array_equal(x, np.arange(32))
    library32.call("reverse", x, 1, 32, 128)  # the error was reported once and is gone


def test_static_and_dynamic_shared_memory_have_one_limit(library: Library) -> None:
    out = np.zeros(32, np.float32)
    assert library.status("large", out, 32 * 1024 + 4) == INVALID_VALUE
    assert not out.any()
    library.call("large", out, 32 * 1024)
    assert out.all()


@pytest.mark.parametrize(
    ("entry", "message"),
    [("divergent", "divergent barrier in block (0, 0, 0)"), ("missing_lane", "lane 0 waits at the _sync operation")],
)
def test_a_kernel_that_would_hang_aborts_with_a_message(library32: Library, entry: str, message: str) -> None:
    script = (
        f"import ctypes; ctypes.CDLL({str(library32.runtime)!r}, ctypes.RTLD_GLOBAL); "
        f"ctypes.CDLL({str(library32.path)!r}).{entry}((ctypes.c_int * 4)(), None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode < 0
    assert message in done.stderr
    lines = KERNELS.read_text().splitlines()
    begin = next(n for n, line in enumerate(lines, 1) if f"{entry}_kernel(" in line)
    named = {n for n in range(begin, begin + 10) if f"line {n}" in done.stderr}
    assert named
    assert all("sync" in lines[n - 1] for n in named)


def test_launches_of_several_threads_take_turns(library: Library) -> None:
    """What a candidate's own threads launch does not run at once: the emulation is no faster for them."""
    most_at_once, ran = np.zeros(2, np.int32), np.zeros(1, np.int32)
    library.call("from_threads", most_at_once, ran, 4)
    assert ran[0] == 4 * 50
    assert most_at_once.tolist() == [0, 1]


HOST_ACCESS = """
import ctypes, mmap, sys
runtime = ctypes.CDLL(sys.argv[3], ctypes.RTLD_GLOBAL)
library, entry = ctypes.CDLL(sys.argv[1]), sys.argv[2]
memory = mmap.mmap(-1, 3 * mmap.PAGESIZE)
first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
arguments = [ctypes.c_void_p(first), ctypes.c_int64(1000), ctypes.c_void_p(None)]
assert runtime.hip_cpu_worker_add(ctypes.c_void_p(first), ctypes.c_size_t(len(memory))) & 1
assert getattr(library, entry)(*arguments) == 0
runtime.hip_cpu_worker_remove(ctypes.c_void_p(first))
print([memory[at] for at in (0, 999, 1000)])
"""


@pytest.mark.parametrize("entry", ["set_by_kernel", "set_by_memset", "set_by_copy"])
def test_device_memory_is_for_kernels_and_copies(library: Library, entry: str) -> None:
    line = [sys.executable, "-c", HOST_ACCESS, str(library.path), entry, str(library.runtime)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[7, 7, 0]"), done.stderr


def test_host_code_that_touches_device_memory_ends_as_beside_a_gpu(library: Library) -> None:
    line = [sys.executable, "-c", HOST_ACCESS, str(library.path), "set_by_host", str(library.runtime)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGSEGV
    assert "host code touched device memory" in done.stderr
