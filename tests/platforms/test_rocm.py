"""The ROCm platform: every way of not having a device is an answer, and a device is described rightly."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from arena.platforms.cuda import CudaPlatform
from arena.platforms.rocm import HipAnswer, RocmPlatform, ask_hip
from tests.platforms.fake_hip import Code, FakeHip


def install(monkeypatch: pytest.MonkeyPatch, hip: FakeHip) -> None:
    package = ModuleType("hip")
    package.__dict__["hip"] = hip
    monkeypatch.setitem(sys.modules, "hip", package)


def test_hip_python_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hip", None)
    answer = ask_hip()
    assert answer.devices == 0 and answer.detail.startswith("hip-python cannot be imported")


def test_hip_python_without_its_submodule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hip", ModuleType("hip"))
    answer = ask_hip()
    assert answer.devices == 0 and answer.detail.startswith("hip-python cannot be imported")


@pytest.mark.parametrize(
    ("hip", "detail"),
    [
        (FakeHip(raises=RuntimeError("failed to dlopen 'libamdhip64.so'")), "failed to dlopen 'libamdhip64.so'"),
        (FakeHip(raises=OSError("no such file")), "no such file"),
        (FakeHip(count=0, count_code=Code.hipErrorNoDevice), "hipErrorNoDevice"),
        (FakeHip(count=0, count_code=Code.hipErrorInsufficientDriver), "hipErrorInsufficientDriver"),
        (FakeHip(count=0), "the HIP runtime sees no device"),
        (FakeHip(properties_code=Code.hipErrorInvalidDevice), "hipErrorInvalidDevice"),
    ],
)
def test_no_device_is_an_answer(monkeypatch: pytest.MonkeyPatch, hip: FakeHip, detail: str) -> None:
    install(monkeypatch, hip)
    assert ask_hip() == HipAnswer(0, detail)


def test_whatever_is_installed_here_answers() -> None:
    answer = ask_hip()
    assert answer.devices >= 0 and answer.detail


def test_a_device_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeHip(count=8))
    assert ask_hip() == HipAnswer(8, "AMD Instinct MI300X", "70051831", "gfx942", 64)


def fake_properties(monkeypatch: pytest.MonkeyPatch, **facts: object) -> None:
    given = SimpleNamespace(total_memory=192 << 30, L2_cache_size=4 << 20, **facts)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: given)


def test_facts_of_an_instinct(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeHip())
    fake_properties(monkeypatch, name="AMD Instinct MI300X", gcnArchName="gfx942:sramecc+:xnack-")
    facts = RocmPlatform().facts()
    assert (facts.platform, facts.vendor, facts.arch, facts.wave_size) == ("rocm", "amd", "gfx942", 64)
    assert (facts.driver, facts.last_level_cache_bytes) == ("70051831", 256 << 20)
    assert facts.peak_bandwidth_gbs == 5300.0 and "MI300X" in facts.peak_source


def test_facts_of_a_radeon_have_wave_size_32(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeHip(name=b"AMD Radeon RX 7900 XTX", arch=b"gfx1100", warp_size=32))
    fake_properties(monkeypatch, name="AMD Radeon RX 7900 XTX", gcnArchName="gfx1100")
    facts = RocmPlatform().facts()
    assert (facts.arch, facts.wave_size, facts.peak_bandwidth_gbs) == ("gfx1100", 32, 960.0)


@pytest.mark.parametrize(("arch", "wave_size"), [("gfx90a:sramecc+", 64), ("gfx950", 64), ("gfx1201", 32)])
def test_facts_without_hip_python(monkeypatch: pytest.MonkeyPatch, arch: str, wave_size: int) -> None:
    monkeypatch.setitem(sys.modules, "hip", None)
    fake_properties(monkeypatch, name="AMD something", gcnArchName=arch)
    facts = RocmPlatform().facts()
    assert (facts.arch, facts.wave_size) == (arch.split(":")[0], wave_size)
    assert (facts.peak_bandwidth_gbs, facts.peak_tflops) == (None, {})
    assert facts.last_level_cache_bytes == 4 << 20


def test_facts_of_an_nvidia_device(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_properties(monkeypatch, name="NVIDIA H200")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    facts = CudaPlatform().facts()
    assert (facts.platform, facts.vendor, facts.arch, facts.wave_size) == ("cuda", "nvidia", "sm_90", 32)
    assert facts.peak_bandwidth_gbs == 4800.0
