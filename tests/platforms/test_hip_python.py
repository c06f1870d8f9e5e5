"""hip-python: every way of not having a device is an answer; asked for real too, on this machine."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from arena.platforms import hip_python
from arena.platforms.hip_python import HipAnswer, ask_hip, describe_hip
from tests.platforms.fake_hip import Code, FakeHip

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


def test_a_device_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeHip(count=8))
    assert describe_hip() == HipAnswer(8, "AMD Instinct MI300X", "70051831", "gfx942", 64, 192 << 30)


def test_whatever_is_installed_here_answers() -> None:
    answer = ask_hip()
    assert answer.devices >= 0 and answer.detail


def test_a_process_that_dies_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `hip` that ends the process, as a runtime with a broken driver may."""
    (tmp_path / "hip.py").write_text("import os\nos._exit(7)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ask_hip() == HipAnswer(0, "hip-python ended with code 7: ")


@pytest.mark.skipif(importlib.util.find_spec("hip") is None, reason="hip-python is not installed")
@pytest.mark.skipif(not LIBRARIES, reason="no libamdhip64 below /usr/lib (Debian: libamdhip64-5)")
@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there is an AMD device")
def test_the_real_one_says_that_there_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "libamdhip64.so").symlink_to(LIBRARIES[-1])
    answer = ask_hip({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert answer == HipAnswer(0, "no device (hipErrorNoDevice)")


def test_pytorchs_own_runtime_is_on_the_search_path() -> None:
    assert Path(hip_python._torch_libraries()).is_dir()
