"""What ROCm and CUDA share: facts from PyTorch's answer, the loaded runtime library, and hipcc's whereabouts."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from arena.errors import InfrastructureError
from arena.platforms import gpu
from arena.platforms.cuda import platform as cuda_platform
from arena.platforms.cuda.platform import CudaPlatform
from arena.platforms.device import TorchDevice
from arena.platforms.gpu import DeviceError, Runtime, loaded_library, loaded_path
from arena.platforms.rocm.platform import RocmPlatform
from arena.platforms.toolchains.programs import find_program
from arena.processes.protocol import Handle
from arena.worker.tracebacks import explain
from tests.platforms.fake_device import GIB, H200, MI300X, FakeDevice, silent

_LINE = "7f1c00000000-7f1c00001000 r-xp 00000000 fe:01 1234567                    "


def test_facts_of_an_nvidia_device() -> None:
    for device in (H200, silent(H200)):
        facts = CudaPlatform(FakeDevice(device)).facts()
        assert (facts.platform, facts.vendor, facts.arch, facts.wave_size) == ("cuda", "nvidia", "sm_90", 32)
        assert facts.peak_bandwidth_gbs == 4800.0
        assert facts.last_level_cache_bytes == 60 << 20


def test_the_table_of_peaks_does_not_shrink_a_cache() -> None:
    larger = TorchDevice(H200.name, H200.arch, H200.memory_bytes, 100 << 20, 132, 32)
    assert CudaPlatform(FakeDevice(larger)).facts().last_level_cache_bytes == 100 << 20


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("libamdhip64", "/opt/rocm-7.0.2/lib/libamdhip64.so.7.0.70002"),
        ("libamdhip64", "/venv/lib/python3.12/site-packages/torch/lib/libamdhip64.so"),
        ("libamdhip64", "/venv/site-packages/torch/lib/libamdhip64-1a2b3c4d.so.6"),
        ("libamdhip64", "/home/a user/rocm/lib/libamdhip64.so.7"),
        ("libcudart", "/venv/site-packages/nvidia/cu13/lib/libcudart.so.13"),
        ("libcudart", "/venv/torch/lib/libcudart-d0da41ae.so.11.0"),
    ],
)
def test_the_loaded_runtime_is_found(name: str, path: str) -> None:
    others = ["/usr/lib/libc.so.6", f"/elsewhere/{name}_impl.so.1", f"/elsewhere/{name}.so.conf", f"/{name}/other.so"]
    maps = "\n".join([*(_LINE + other for other in others), "7ffc-7ffd rw-p 00000000 00:00 0   [stack]", _LINE + path])
    assert loaded_library(name, maps) == path
    assert loaded_library(name, "\n".join(_LINE + other for other in others)) is None


def test_a_runtime_that_is_not_loaded_is_said_plainly() -> None:
    with pytest.raises(InfrastructureError, match="PyTorch has not loaded libnosuchruntime"):
        loaded_path("libnosuchruntime")


def test_functions_and_libraries_by_vendor() -> None:
    rocm, cuda = RocmPlatform(FakeDevice(MI300X)).names, CudaPlatform(FakeDevice(H200)).names
    assert (rocm.prefix, rocm.library) == ("hip", "libamdhip64")
    assert (cuda.prefix, cuda.library) == ("cuda", "libcudart")


class BlockRuntime:
    """Simulates how ROCr places allocations: best fit in blocks of 2 MiB, a freed block kept for the next small one."""

    block = 2 << 20

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self.blocks: dict[int, int] = {}
        self._kept: list[int] = []

    def malloc(self, num_bytes: int) -> int:
        for base, size in self.blocks.items():
            inside = [at + self.used[at] for at in self.used if base <= at < base + size]
            if inside and size == self.block and max(inside) + num_bytes <= base + size:
                self.used[max(inside)] = num_bytes
                return max(inside)
        if num_bytes < self.block and self._kept:
            base = self._kept.pop()
        else:
            base = max((at + size for at, size in self.blocks.items()), default=self.block)
            self.blocks[base] = -(-num_bytes // self.block) * self.block
        self.used[base] = num_bytes
        return base

    def free(self, address: int) -> None:
        del self.used[address]
        if self.blocks.get(address) == self.block:
            self._kept.append(address)

    def export(self, address: int) -> str:
        base, size = next((at, size) for at, size in self.blocks.items() if at <= address < at + size)
        return f"{base}+{size}"


class PlainBuffer:
    """A `DeviceBuffer` without a tensor, which needs a device."""

    def __init__(self, runtime: BlockRuntime, address: int, handle: Handle, owner: bool) -> None:
        assert owner
        self.handle, self._runtime, self._address = handle, runtime, address

    def close(self) -> None:
        self._runtime.free(self._address)


@pytest.mark.parametrize("num_bytes", [1, 300_000, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 7_000_000])
def test_what_is_exported_holds_nothing_else(num_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An importer sees all of the block, also after the judge has freed the buffer."""
    platform, runtime = RocmPlatform(FakeDevice(MI300X)), BlockRuntime()
    monkeypatch.setattr(platform, "_runtime", runtime)
    monkeypatch.setattr(gpu, "DeviceBuffer", PlainBuffer)
    runtime.malloc(4096)
    buffer = platform.allocate(num_bytes)
    start, size = map(int, buffer.handle.ipc.split("+"))
    assert buffer.handle.num_bytes == num_bytes <= size
    runtime.malloc(4096)
    assert [at for at in runtime.used if start <= at < start + size] == [start]
    buffer.close()
    for _ in range(3):
        runtime.malloc((2 << 20) - 4096)
    assert not [at for at in runtime.used if start <= at < start + size]


class Held:
    """A HIP library whose sharing a client holds up, until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def hipMalloc(self, *arguments: object) -> int:
        return 2

    def hipIpcGetMemHandle(self, *arguments: object) -> int:
        self.let_go.wait(20.0)
        return 0

    def hipFree(self, *arguments: object) -> int:
        return 17

    def hipGetLastError(self) -> int:
        return 0


def test_a_client_that_stays_silent_holds_the_judge_up_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(gpu, "loaded_path", lambda name: name)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: held)
    assert 0 < RocmPlatform.names.sharing_limit_s <= 60 and not CudaPlatform.names.sharing_limit_s
    runtime = Runtime(replace(RocmPlatform.names, sharing_limit_s=0.2, error_name=lambda code: ""))
    with pytest.raises(InfrastructureError, match="hipIpcGetMemHandle did not end within"):
        runtime.export(1 << 21)
    held.let_go.set()
    assert runtime.export(1 << 21) == "00" * 64
    with pytest.raises(RuntimeError, match="hipFree returned error 17"):
        runtime.free(1 << 21)


class Misaligned:
    """A runtime on whose device a kernel has left an error."""

    def __init__(self) -> None:
        self.cudaGetErrorName = lambda code: b"cudaErrorMisalignedAddress" if code.value == 716 else None

    def cudaDeviceSynchronize(self) -> int:
        return 716

    def cudaGetLastError(self) -> int:
        return 716


def test_an_error_of_the_device_has_its_name_and_is_told_without_the_harnesss_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    for place in (gpu, cuda_platform):
        monkeypatch.setattr(place, "loaded_path", lambda name: name)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: Misaligned())
    with pytest.raises(DeviceError) as caught:
        Runtime(CudaPlatform.names).synchronize()
    said = "cudaDeviceSynchronize returned error 716 cudaErrorMisalignedAddress"
    assert explain(caught.value, "/nowhere/kernel.py") == said
    assert cuda_platform.error_name(1) == ""


def hipcc(root: Path) -> Path:
    program = root / "bin" / "hipcc"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    return program


def test_hipcc_on_path_then_rocm_path_then_the_usual_place(tmp_path: Path) -> None:
    usual, nothing = tmp_path / "opt", {"PATH": str(tmp_path)}
    assert find_program("hipcc", nothing, (usual,)) is None
    in_usual = hipcc(usual)
    assert find_program("hipcc", nothing, (usual,)) == in_usual
    in_named = hipcc(tmp_path / "rocm-7")
    named = {**nothing, "ROCM_PATH": str(tmp_path / "rocm-7")}
    assert find_program("hipcc", named, (usual,)) == in_named
    assert find_program("hipcc", {**named, "ROCM_PATH": str(tmp_path / "absent")}, (usual,)) == in_usual
    on_path = hipcc(tmp_path / "first")
    assert find_program("hipcc", {**named, "PATH": str(on_path.parent)}, (usual,)) == on_path
    in_usual.chmod(0o644)
    assert find_program("hipcc", nothing, (usual,)) is None


@pytest.mark.parametrize(("free_gib", "given_back"), [(100, False), (18, False), (17, True), (0, True)])
def test_hosts_find_room(free_gib: int, given_back: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of the device is not kept for later by the judge alone."""
    platform, asked = CudaPlatform(FakeDevice(H200, free_bytes=free_gib * GIB)), []
    monkeypatch.setattr(platform, "free_cache", lambda: asked.append(True))
    platform.release_cached_memory()
    assert bool(asked) is given_back
