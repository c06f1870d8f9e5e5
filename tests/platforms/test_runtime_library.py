"""Which build of the HIP runtime a worker of HIP candidates loads; libraries made by g++ stand in for ROCm's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from arena.errors import InfrastructureError
from arena.judge.workers.worker import ForkServer, WorkerFolder
from arena.platforms import gpu
from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.rocm import hip_hipcc
from arena.platforms.rocm.hip_hipcc import HipccToolchain
from arena.platforms.rocm.runtime_library import needed_files
from arena.platforms.toolchains.base import NativeWorker
from arena.platforms.toolchains.build_cache import BuildCache
from arena.processes.protocol import Prepare

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine"),
]
_HIPCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "HIP version: 7.0"; exit 0; fi
while [ "$1" != -o ]; do shift; done
exec g++ -o "$2" FOLDER/main.cpp -Wl,--no-as-needed FOLDER/rocm/libamdhip64.so
"""


def library(file: Path, soname: str, *needed: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    source = file.with_suffix(".cpp")
    source.write_text("int unused;\n", encoding="ascii")
    rest = [f"-Wl,-soname,{soname}", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", *map(str, needed)]
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(file), str(source), *rest], check=True)
    return file


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """The runtime as PyTorch's wheels hold it: a file name without the version that its own name has."""
    folder = tmp_path / "site-packages" / "torch" / "lib"
    hsa = library(folder / "libhsa-runtime64.so", "libhsa-runtime64.so")
    library(folder / "libtorch_hip.so", "libtorch_hip.so")
    library(folder / "libamd_comgr.so", "libamd_comgr.so.3")
    return library(folder / "libamdhip64.so", "libamdhip64.so.7", hsa)


@pytest.fixture
def toolchain(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> HipccToolchain:
    (tmp_path / "main.cpp").write_text("int main() {}\n", encoding="ascii")
    hipcc = tmp_path / "hipcc"
    hipcc.write_text(_HIPCC.replace("FOLDER", str(tmp_path)), encoding="ascii")
    hipcc.chmod(0o755)
    monkeypatch.setattr(hip_hipcc, "loaded_runtime", lambda: wheel)
    return HipccToolchain(BuildCache(tmp_path / "cache"), compiler=str(hipcc))


def test_a_worker_loads_pytorchs_runtime_and_is_shown_what_that_needs(
    tmp_path: Path, wheel: Path, toolchain: HipccToolchain
) -> None:
    library(tmp_path / "rocm" / "libamdhip64.so", "libamdhip64.so.7")
    worker = toolchain.native_worker("gfx942")
    assert worker.runtime == wheel
    shown = {path.name for path in worker.folders[1:]}
    assert shown == {"libamdhip64.so", "libhsa-runtime64.so", "libamd_comgr.so"}
    plain = subprocess.run([worker.program], capture_output=True, text=True, check=False)
    assert plain.returncode == 127 and "libamdhip64.so.7: cannot open" in plain.stderr
    subprocess.run([worker.program], env={"LD_PRELOAD": str(worker.runtime)}, check=True)


def test_two_releases_of_rocm_are_refused(tmp_path: Path, toolchain: HipccToolchain) -> None:
    library(tmp_path / "rocm" / "libamdhip64.so", "libamdhip64.so.6")
    with pytest.raises(InfrastructureError, match=r"links libamdhip64\.so\.6, but PyTorch loads libamdhip64\.so\.7"):
        toolchain.native_worker("gfx942")


def test_what_lies_beside_the_runtime_in_rocms_package_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "_rocm_sdk_core" / "lib"
    elf = library(folder / "rocm_sysdeps" / "lib" / "librocm_sysdeps_elf.so.1", "librocm_sysdeps_elf.so.1")
    runtime = library(folder / "libamdhip64.so.7", "libamdhip64.so.7", elf)
    assert needed_files(runtime) == (runtime, elf)


def test_a_confined_worker_loads_it_before_any_other(tmp_path: Path) -> None:
    """From a folder that its sandbox hides."""
    runtime = library(tmp_path / "site-packages" / "libamdhip64.so", "libamdhip64.so.7")
    built = HipCpuToolchain(BuildCache(tmp_path / "cache")).native_worker("cpu")
    native = NativeWorker(built.program, (*built.folders, runtime), runtime)
    home = tmp_path / "home"
    server = ForkServer("", spins=False, interprets=False)
    try:
        worker = server.spawn(WorkerFolder(home, home / "triton", None, native), [])
        worker.ask(Prepare(), 20.0)
        maps = Path(f"/proc/{worker._pid}/maps").read_text(encoding="utf-8")
        assert gpu.loaded_library("libamdhip64", maps) == str(runtime)
        worker.kill_worker()
    finally:
        server.close()
