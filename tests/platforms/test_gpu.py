"""What ROCm and CUDA share: facts from PyTorch's answer, the loaded runtime library, and hipcc's whereabouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.errors import InfrastructureError
from arena.platforms.cuda.platform import CudaPlatform
from arena.platforms.device import TorchDevice
from arena.platforms.gpu import _loaded, loaded_library
from arena.platforms.rocm.platform import RocmPlatform
from arena.platforms.toolchains.programs import find_program
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
        _loaded("libnosuchruntime")


def test_functions_and_libraries_by_vendor() -> None:
    rocm, cuda = RocmPlatform(FakeDevice(MI300X)).names, CudaPlatform(FakeDevice(H200)).names
    assert (rocm.prefix, rocm.library) == ("hip", "libamdhip64")
    assert (cuda.prefix, cuda.library) == ("cuda", "libcudart")


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
