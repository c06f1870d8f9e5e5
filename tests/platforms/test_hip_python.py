"""hip-python: every way of not having a device is an answer; asked for real too, on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from arena.platforms.rocm import hip_python
from arena.platforms.rocm.hip_launch import LaunchSeen, launch_code_object, launched
from arena.platforms.rocm.hip_python import HipAnswer, ask_hip, describe_hip, error_name
from tests.platforms.fake_hip import Code, FakeHip

RIGHT = LaunchSeen("", 8, (64, *range(2, 4097)))
LIBRARIES = sorted(Path("/usr/lib").glob("*/libamdhip64.so.*"))


def install(monkeypatch: pytest.MonkeyPatch, hip: FakeHip) -> None:
    package = ModuleType("hip")
    package.__dict__["hip"] = hip
    monkeypatch.setitem(sys.modules, "hip", package)


def test_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hip", None)
    assert describe_hip().detail.startswith("hip-python cannot be imported")


def test_it_lacks_its_submodule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hip", ModuleType("hip"))
    assert describe_hip().detail.startswith("hip-python cannot be imported")


@pytest.mark.parametrize(
    ("hip", "detail"),
    [
        (FakeHip(raises=RuntimeError("failed to dlopen 'libamdhip64.so'")), "failed to dlopen 'libamdhip64.so'"),
        (FakeHip(raises=OSError("no such file")), "no such file"),
        (FakeHip(count=0, count_code=Code.hipErrorNoDevice), "no device (hipErrorNoDevice)"),
        (FakeHip(count=0, count_code=Code.hipErrorInsufficientDriver), "hipErrorInsufficientDriver"),
        (FakeHip(count=0), "the HIP runtime sees no device"),
        (FakeHip(properties_code=Code.hipErrorInvalidDevice), "hipErrorInvalidDevice"),
    ],
)
def test_no_device_is_an_answer(monkeypatch: pytest.MonkeyPatch, hip: FakeHip, detail: str) -> None:
    install(monkeypatch, hip)
    assert describe_hip() == HipAnswer(0, detail)


@pytest.mark.parametrize("fills_in", [True, False])
def test_a_device_is_described(monkeypatch: pytest.MonkeyPatch, fills_in: bool) -> None:
    """By hip-python before and from 10, whose hipGetDeviceProperties returns the structure."""
    install(monkeypatch, FakeHip(count=8, fills_in=fills_in))
    assert describe_hip() == HipAnswer(
        8, "AMD Instinct MI300X", "70051831", "gfx942", 64, 192 << 30, multiprocessors=304, l2_bytes=4 << 20
    )


def test_errors_have_names_and_no_library_is_needed_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeHip(raises=OSError("no libamdhip64")))
    assert (error_name(100), error_name(12345)) == ("hipErrorNoDevice", "")
    monkeypatch.setitem(sys.modules, "hip", None)
    assert error_name(100) == ""


def test_a_kernel_of_a_code_object_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    hip = FakeHip()
    install(monkeypatch, hip)
    assert launched(b"\x7fELF", "probe") == RIGHT
    assert hip.calls == ["hipDeviceSynchronize", "hipFree", "hipFree", "hipModuleUnload"]


@pytest.mark.parametrize(
    ("hip", "code", "kernel", "problem"),
    [
        (FakeHip(count_code=Code.hipErrorNoDevice), b"\x7fELF", "probe", "hipErrorNoDevice"),
        (FakeHip(raises=RuntimeError("failed to dlopen")), b"\x7fELF", "probe", "failed to dlopen"),
        (FakeHip(), b"text", "probe", "hipErrorInvalidImage"),
        (FakeHip(), b"\x7fELF", "absent", "hipErrorNotFound"),
    ],
)
def test_what_cannot_be_launched_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, hip: FakeHip, code: bytes, kernel: str, problem: str
) -> None:
    install(monkeypatch, hip)
    assert launched(code, kernel) == LaunchSeen(problem)


def test_whatever_is_installed_here_answers() -> None:
    answer = ask_hip()
    assert answer.devices >= 0 and answer.detail


def test_a_process_that_dies_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `hip` that ends the process, as a runtime with a broken driver may."""
    (tmp_path / "hip.py").write_text("import os\nos._exit(7)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert ask_hip() == HipAnswer(0, "hip-python ended with code 7: ")


@pytest.mark.skipif(importlib.util.find_spec("hip") is None, reason="hip-python is not installed")
@pytest.mark.skipif(not LIBRARIES, reason="no libamdhip64 below /usr/lib (Debian: libamdhip64-5)")
@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there is an AMD device")
def test_the_real_one_says_that_there_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "libamdhip64.so").symlink_to(LIBRARIES[-1])
    answer = ask_hip({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert answer == HipAnswer(0, "no device (hipErrorNoDevice)")


@pytest.mark.skipif(importlib.util.find_spec("hip") is None, reason="hip-python is not installed")
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_the_real_one_launches_on_a_runtime_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So calls and answers are those of the hip-python that is installed; the device alone is made up."""
    source, library = Path(__file__).with_name("stub_hip.cpp"), tmp_path / "libamdhip64.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    right, wrong = tmp_path / "right.co", tmp_path / "wrong.co"
    right.write_bytes(b"\x7fELF and more")
    wrong.write_bytes(b"text")
    assert launch_code_object(right, "probe") == RIGHT
    assert launch_code_object(wrong, "probe") == LaunchSeen("hipErrorInvalidImage")
    assert launch_code_object(right, "absent") == LaunchSeen("hipErrorNotFound")
    assert error_name(719) == "hipErrorLaunchFailure"


def test_pytorchs_own_runtime_is_on_the_search_path() -> None:
    assert Path(hip_python._torch_libraries()).is_dir()
