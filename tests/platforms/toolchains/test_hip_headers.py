"""Where HIP's headers are looked for and how they get there; the overlay's choice among device libraries."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from arena.errors import InfrastructureError
from arena.package import PACKAGE
from arena.platforms.cuda.platform import LOCAL_BYTES
from arena.platforms.rocm import hip_headers, hip_overlay
from arena.platforms.toolchains.build_cache import BuildCache
from arena.processes import process

INSIDE = "triton/backends/amd/include"


class FakePip:
    """Stands in for `process.run`: puts a small wheel where pip was told to."""

    def __init__(self, members: dict[str, str] | None) -> None:
        self.members = members
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], *, timeout_s: float, env: object = None) -> process.Finished:
        self.commands.append(command)
        if self.members is None:
            return process.Finished(1, "ERROR: no network", 0.1)
        folder = Path(command[command.index("-d") + 1])
        with zipfile.ZipFile(folder / "triton-3.4.0-any.whl", "w") as wheel:
            for name, text in self.members.items():
                wheel.writestr(name, text)
        return process.Finished(0, "", 0.1)


def install_pip(monkeypatch: pytest.MonkeyPatch, members: dict[str, str] | None) -> FakePip:
    pip = FakePip(members)
    monkeypatch.setattr(process, "run", pip)
    return pip


def test_headers_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = {
        f"{INSIDE}/hip/hip_cooperative_groups.h": "groups",
        f"{INSIDE}/hip/amd_detail/x.h": "detail",
        f"{INSIDE}/hsa/hsa.h": "of another library",
        "triton/compiler.py": "code",
        f"{INSIDE}/hip/../../../../../outside.h": "climbs out",
    }
    pip = install_pip(monkeypatch, wheel)
    folder = tmp_path / "deep" / "include"
    assert hip_headers.fetch(folder) == folder == hip_headers.fetch(folder)
    assert len(pip.commands) == 1
    assert "triton==3.4.0" in pip.commands[0] and "--no-deps" in pip.commands[0]
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"deep/include/hip/hip_cooperative_groups.h", "deep/include/hip/amd_detail/x.h"}


@pytest.mark.parametrize("members", [None, {"triton/compiler.py": "code"}])
def test_what_cannot_be_fetched_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: dict[str, str] | None
) -> None:
    install_pip(monkeypatch, members)
    with pytest.raises(InfrastructureError, match="HIP headers"):
        hip_headers.fetch(tmp_path / "deep" / "include")
    assert list((tmp_path / "deep").iterdir()) == []


def test_headers_are_looked_for_in_the_environment_then_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hip_headers.find() is None
    own, users = hip_headers.places()
    for folder in (users, own):
        (folder / "hip").mkdir(parents=True)
        (folder / "hip" / "hip_cooperative_groups.h").touch()
        assert hip_headers.find() == folder


def test_missing_headers_name_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip_headers, "find", lambda: None)
    monkeypatch.setattr(hip_overlay, "device_libraries", lambda: tmp_path)
    with pytest.raises(InfrastructureError, match=r"HIP headers are missing: python -m arena\.platforms\.rocm"):
        hip_overlay.overlay(BuildCache(tmp_path), tmp_path / "clang++")


@pytest.mark.parametrize(("isa", "number"), [("942", 9402), ("950", 9500), ("90a", 9010), ("1201", 12001)])
def test_the_number_by_which_the_device_libraries_know_an_isa(isa: str, number: int) -> None:
    assert "@__oclc_ISA_version = linkonce_odr" in hip_overlay.control_text(isa)
    assert f"i32 {number}," in hip_overlay.control_text(isa)


def test_device_libraries_are_found_below_a_root(tmp_path: Path) -> None:
    assert hip_overlay.device_libraries(tmp_path) is None
    folder = tmp_path / "opt" / "rocm-6.4.1" / "amdgcn" / "bitcode"
    folder.mkdir(parents=True)
    assert hip_overlay.device_libraries(tmp_path) is None
    (folder / "ockl.bc").touch()
    assert hip_overlay.device_libraries(tmp_path) == folder


def test_native_workers_get_as_much_local_memory_as_those_of_triton() -> None:
    header = (PACKAGE / "platforms" / "toolchains" / "hip_worker" / "device_gpu.h").read_text(encoding="utf-8")
    assert f"cudaDeviceSetLimit(cudaLimitStackSize, {LOCAL_BYTES})" in header
