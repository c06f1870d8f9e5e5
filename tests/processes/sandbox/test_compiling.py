"""Compilers behind walls: a source that names a secret file gets an error, and not a word of the file."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from arena.judge.compile.hip_toolchains import toolchain_for
from arena.platforms.cross.compilers import abilities, hip_cross_toolchain
from arena.platforms.toolchains.base import BuildFailed, Built, Source, Target
from arena.platforms.toolchains.hip_compilers import find
from arena.processes.sandbox import bubblewrap, compiling
from arena.processes.sandbox.bubblewrap import Features

SECRET = "held_out_sizes: 12345"
HEADER = """#pragma once
#include <stdint.h>
#include <hip/hip_runtime.h>
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream);
"""
KERNEL = """#include "task.h"
__global__ void k(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream) {
    k<<<1, 32, 0, stream>>>(x, y);
    return hipGetLastError();
}
"""
READS = {
    "include": '#include "{path}"\n',
    "quoted-in-an-error": '#define X\n#include X "{path}"\n#include "{path}"\n',
    "incbin": '#ifndef HIP_CPU\nasm(".incbin \\"{path}\\"");\n#endif\n#include "{path}"\n',
    "by-the-working-folder": '#include "/proc/self/cwd/../../../../../../../../{path}"\n',
    "by-another-process": '#include "/proc/1/root{path}"\n',
}
TARGETS = ["cpu", *(next(iter(a.targets)) for a in abilities() if a.language == "hip" and a.able)]
needs_compiler = pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "heldout.yaml"
    file.write_text(f"{SECRET}\n", encoding="utf-8")
    return file


@pytest.fixture(params=["bubblewrap", "launched"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By bubblewrap, and as where it is missing."""
    if request.param == "launched":
        monkeypatch.setattr(bubblewrap, "features", lambda: Features(False, "asked not to"))
    elif not bubblewrap.features().works:
        pytest.skip(bubblewrap.features().problem)
    if request.param == "launched" and "landlock" not in compiling.level():
        pytest.skip(f"no Landlock: {compiling.level()}")
    return str(request.param)


def build(arch: str, cache: Path, text: str) -> Built | BuildFailed:
    if arch == "cpu":
        toolchain = toolchain_for(Target("cpu"), cache, run=compiling.run_confined)
    else:
        toolchain = hip_cross_toolchain(arch, cache, run=compiling.run_confined)
    return toolchain.build(Source(text, HEADER), Target(arch, 64 if arch.startswith("gfx9") else 32))


@pytest.mark.slow(but=["bubblewrap-cpu"])
@needs_compiler
@pytest.mark.parametrize("arch", TARGETS)
def test_compilers_build_behind_walls_and_the_cache_keeps_it(way: str, arch: str, tmp_path: Path) -> None:
    first = build(arch, tmp_path / "cache", KERNEL)
    assert isinstance(first, Built), first.log
    assert first.library.stat().st_size > 0 and not first.cached
    again = build(arch, tmp_path / "cache", KERNEL)
    assert isinstance(again, Built) and again.cached


@pytest.mark.slow(but=["bubblewrap-include"])
@needs_compiler
@pytest.mark.parametrize("attempt", READS.values(), ids=READS)
def test_a_secret_file_is_in_no_log(way: str, secret: Path, tmp_path: Path, attempt: str) -> None:
    outcome = build("cpu", tmp_path / "cache", KERNEL + attempt.format(path=secret))
    assert isinstance(outcome, BuildFailed)
    assert "held_out" not in outcome.log and "12345" not in outcome.log, outcome.log
    assert "heldout.yaml" in outcome.log, "the candidate's own line is what it may see"


@pytest.mark.slow
@needs_compiler
def test_the_same_source_shows_the_secret_where_there_are_no_walls(
    secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused above is there to be read."""
    monkeypatch.setenv("ARENA_SANDBOX", "basic")
    outcome = build("cpu", tmp_path / "cache", KERNEL + READS["include"].format(path=secret))
    assert isinstance(outcome, BuildFailed) and "held_out_sizes" in outcome.log


@pytest.mark.slow
@pytest.mark.parametrize("arch", TARGETS[1:])
def test_compilers_for_gpus_take_in_no_secret(secret: Path, tmp_path: Path, arch: str) -> None:
    if compiling.level() == "none":
        pytest.skip("no walls for compilers on this machine")
    text = f'{KERNEL}asm(".incbin \\"{secret}\\"");\n'
    outcome = build(arch, tmp_path / "cache", text)
    assert isinstance(outcome, BuildFailed) and "held_out" not in outcome.log


def test_there_is_no_network_and_nothing_of_the_project(way: str, tmp_path: Path) -> None:
    project = Path(compiling.__file__).resolve().parents[3]
    script = f'ls -A "{project / "tasks"}" "$HOME"; cat /proc/net/dev | grep -c eth; touch "{project}/x" /usr/x made'
    done = compiling.run_confined(
        ["/bin/sh", "-c", script], timeout_s=30.0, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "HOME": "/root"}
    )
    assert "triton2triton" not in done.output and not (project / "x").exists()
    assert (tmp_path / "made").exists()


def test_walls_cost_little(way: str, tmp_path: Path) -> None:
    """The best of some, beside starts of Python. Half a second would be noticed in a run of hundreds."""
    took, control = [], []
    for _ in range(5):
        started = time.perf_counter()
        assert compiling.run_confined(["/bin/true"], timeout_s=60.0, cwd=tmp_path, env={}).ok
        took.append(time.perf_counter() - started)
        started = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
        control.append(time.perf_counter() - started)
    assert min(took) < max(0.5, 20 * min(control))


def test_what_a_compiler_writes_is_limited(way: str, tmp_path: Path) -> None:
    """The limit is there before the walls are, which may not raise it."""

    def write(mebibytes: int) -> int:
        source = f"open('made', 'wb').write(bytes({mebibytes} << 20))"
        command = [sys.executable, "-c", source]
        done = compiling.run_confined(command, timeout_s=60, cwd=tmp_path, env={}, file_bytes=2 << 20)
        return done.returncode

    assert write(1) == 0
    assert write(3) != 0
