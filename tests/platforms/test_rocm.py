"""The ROCm platform, decided from what PyTorch and hip-python would say of known and unknown devices."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from arena import platforms
from arena.judge.workers.environment import clean_environment
from arena.platforms.device import TorchDevice
from arena.platforms.rocm.hip_python import HipAnswer
from arena.platforms.rocm.platform import (
    IPC_MODE,
    RocmPlatform,
    choose_ipc_mode,
    disagreements,
    module_version,
    process_isolation,
    shares_by_socket,
    usual_wave_size,
)
from tests.platforms.fake_device import (
    GIB,
    MI210,
    MI300X,
    MI355X,
    MIB,
    RX_7900_XTX,
    RX_9070,
    UNKNOWN,
    FakeDevice,
    silent,
)

ABSENT = HipAnswer(0, "hip-python cannot be imported (No module named 'hip')")


def agreeing(device: TorchDevice) -> HipAnswer:
    """hip-python saying the same as PyTorch."""
    wave = device.wave_size or usual_wave_size(device.arch)
    return HipAnswer(1, device.name, "70051831", device.arch, wave, device.memory_bytes)


@pytest.mark.parametrize(
    ("device", "wave", "cache_bytes", "peak_gbs"),
    [
        pytest.param(MI210, 64, 8 * MIB, 1638.4, id="MI210"),
        pytest.param(MI300X, 64, 256 * MIB, 5300.0, id="MI300X"),
        pytest.param(MI355X, 64, 256 * MIB, 8000.0, id="MI355X"),
        pytest.param(RX_7900_XTX, 32, 96 * MIB, 960.0, id="RX-7900-XTX"),
        pytest.param(RX_9070, 32, 64 * MIB, 640.0, id="RX-9070"),
        pytest.param(UNKNOWN, 32, 2 * MIB, None, id="unknown"),
    ],
)
@pytest.mark.parametrize("hip_python", [True, False])
def test_facts(device: TorchDevice, wave: int, cache_bytes: int, peak_gbs: float | None, hip_python: bool) -> None:
    hip = agreeing(device) if hip_python else ABSENT
    platform = RocmPlatform(FakeDevice(device), lambda: hip)
    facts = platform.facts()
    assert (facts.platform, facts.vendor, facts.arch, facts.wave_size) == ("rocm", "amd", device.arch, wave)
    assert (facts.last_level_cache_bytes, facts.peak_bandwidth_gbs) == (cache_bytes, peak_gbs)
    assert facts.memory_bytes == device.memory_bytes
    assert bool(facts.peak_source) == (peak_gbs is not None)
    assert platform.remarks() == ()


def test_a_device_without_a_name_is_still_measured_cold() -> None:
    """Inside containers drivers may know no product names; the cache follows from the arch then."""
    nameless = FakeDevice(replace(MI300X, name="AMD Radeon Graphics"))
    facts = RocmPlatform(nameless, lambda: ABSENT).facts()
    assert (facts.last_level_cache_bytes, facts.peak_bandwidth_gbs, facts.wave_size) == (256 * MIB, None, 64)


def test_a_partition_is_held_to_the_rates_of_its_own_compute_units() -> None:
    """An MI300X in CPX is eight devices of 38 compute units under the product's name."""
    partition = FakeDevice(replace(MI300X, multiprocessors=38, memory_bytes=24 * GIB))
    facts = RocmPlatform(partition, lambda: ABSENT).facts()
    assert facts.peak_tflops["float16"] == pytest.approx(1307.4 / 8)
    assert facts.roofline_ms(1.3074e12, 1e6, "float16") == pytest.approx(8.0)
    assert (facts.last_level_cache_bytes, facts.peak_bandwidth_gbs) == (256 * MIB, 5300.0)
    assert "38 of 304" in facts.peak_source


def test_memory_multiprocessors_and_versions_come_from_pytorch() -> None:
    platform = RocmPlatform(FakeDevice(MI300X, free_bytes=5 * GIB), lambda: ABSENT)
    assert (platform.memory().free_bytes, platform.memory().total_bytes) == (5 * GIB, 192 * GIB)
    assert platform.multiprocessors() == 304
    assert platform.versions()["hip"] == "7.0.51831"


@pytest.mark.parametrize(
    ("device", "hip", "wave"),
    [
        pytest.param(silent(MI300X), agreeing(MI300X), 64, id="from-hip-python"),
        pytest.param(silent(RX_7900_XTX), replace(agreeing(RX_7900_XTX), wave_size=64), 64, id="a-wave64-runtime"),
        pytest.param(silent(RX_7900_XTX), agreeing(MI300X), 32, id="hip-python-means-another-device"),
        pytest.param(silent(MI210), ABSENT, 64, id="by-arch"),
    ],
)
def test_wave_size_where_pytorch_does_not_tell(device: TorchDevice, hip: HipAnswer, wave: int) -> None:
    assert RocmPlatform(FakeDevice(device), lambda: hip).facts().wave_size == wave


@pytest.mark.parametrize(
    ("arch", "wave"),
    [
        *(("gfx803", 64), ("gfx906", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx950", 64)),
        *(("gfx1030", 32), ("gfx1100", 32), ("gfx1151", 32), ("gfx1201", 32), ("gfx1310", 32)),
    ],
)
def test_usual_wave_sizes(arch: str, wave: int) -> None:
    assert usual_wave_size(arch) == wave


def test_where_hip_python_sees_another_device_pytorch_is_believed_and_it_is_said() -> None:
    platform = RocmPlatform(FakeDevice(MI300X), lambda: agreeing(RX_7900_XTX))
    assert (platform.facts().arch, platform.facts().wave_size) == ("gfx942", 64)
    arch, wave, memory = platform.remarks()
    assert arch == "hip-python sees gfx1100, PyTorch gfx942"
    assert wave == "hip-python says waves of 32, PyTorch of 64"
    assert str(24 * GIB) in memory and str(192 * GIB) in memory


def test_a_little_memory_kept_by_a_runtime_is_no_disagreement() -> None:
    hip = replace(agreeing(MI300X), memory_bytes=191 * GIB)
    assert disagreements(MI300X, hip) == ()
    assert disagreements(MI300X, replace(hip, memory_bytes=96 * GIB)) != ()


def test_facts_are_hip_pythons_where_it_means_the_same_device() -> None:
    knows_more = replace(agreeing(UNKNOWN), multiprocessors=8, l2_bytes=64 * MIB)
    assert RocmPlatform(FakeDevice(UNKNOWN), lambda: knows_more).facts().last_level_cache_bytes == 64 * MIB
    another = replace(knows_more, multiprocessors=16)
    platform = RocmPlatform(FakeDevice(UNKNOWN), lambda: another)
    assert platform.facts().last_level_cache_bytes == 2 * MIB
    assert platform.remarks() == ("hip-python counts 16 compute units, PyTorch 8",)


def test_hip_is_asked_once() -> None:
    asked: list[int] = []

    def ask() -> HipAnswer:
        asked.append(1)
        return agreeing(MI300X)

    platform = RocmPlatform(FakeDevice(MI300X), ask)
    platform.facts()
    platform.remarks()
    assert asked == [1]


def test_buffers_go_through_the_kernel_module_where_it_is_amds_own_else_over_a_socket(tmp_path: Path) -> None:
    def chosen(environment: dict[str, str], module: Path) -> dict[str, str]:
        choose_ipc_mode(environment, module)
        return environment

    kernels_own, amds_own = tmp_path / "kernel", tmp_path / "amd"
    for module in (kernels_own, amds_own):
        module.mkdir()
    (amds_own / "version").write_text("6.12.12\n", encoding="ascii")
    assert chosen({}, tmp_path / "absent") == {}
    assert chosen({}, kernels_own) == {IPC_MODE: "0"} and shares_by_socket({}, kernels_own)
    assert chosen({}, amds_own) == {IPC_MODE: "1"} and not shares_by_socket({}, amds_own)
    assert chosen({IPC_MODE: "0"}, amds_own) == {IPC_MODE: "0"}, "chosen by the user"
    assert shares_by_socket({IPC_MODE: "0"}, amds_own) and not shares_by_socket({IPC_MODE: "1"}, kernels_own)


def test_workers_run_under_the_judges_variables_and_the_record_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HSA_XNACK", "1")
    monkeypatch.setenv("HSA_OVERRIDE_CPU_AFFINITY_DEBUG", "1")
    monkeypatch.delenv("HSA_ENABLE_SDMA", raising=False)
    versions = RocmPlatform(FakeDevice(MI300X), lambda: ABSENT).versions()
    kept = clean_environment(interprets=False)
    for seen in (versions, kept):
        assert (seen["HSA_XNACK"], "HSA_ENABLE_SDMA" in seen) == ("1", False)
        assert seen["HSA_OVERRIDE_CPU_AFFINITY_DEBUG"] == "0", "whatever the user has set: a timing would be refused"


def test_only_rocm_shares_over_a_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`auto` is asked of the PyTorch that is installed, without importing it."""
    monkeypatch.setenv(IPC_MODE, "0")
    assert platforms.shares_by_socket("rocm")
    assert not platforms.shares_by_socket("cpu") and not platforms.shares_by_socket("cuda")
    for hip, expected in (("'6.4.1'", True), ("None", False)):
        package = tmp_path / hip / "torch"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise ImportError\n", encoding="utf-8")
        (package / "version.py").write_text(f"hip = {hip}\n", encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, "torch", raising=False)
            patch.syspath_prepend(str(package.parent))
            assert platforms.shares_by_socket("auto") is expected


def test_the_record_says_whether_processes_run_at_once(tmp_path: Path) -> None:
    assert process_isolation(tmp_path) == {}
    card = tmp_path / "class" / "drm" / "card1" / "device"
    parameters = tmp_path / "module" / "amdgpu" / "parameters"
    for folder in (card, parameters):
        folder.mkdir(parents=True)
    (card / "enforce_isolation").write_text("1 0 0 0\n", encoding="ascii")
    (parameters / "hws_max_conc_proc").write_text("-1\n", encoding="ascii")
    assert process_isolation(tmp_path) == {"enforce_isolation card1": "1 0 0 0", "hws_max_conc_proc": "-1"}


def test_the_driver_is_the_kernel_module_else_the_runtime(tmp_path: Path) -> None:
    version = tmp_path / "version"
    assert module_version(version) == ""
    version.write_text("6.12.12\n", encoding="ascii")
    assert module_version(version) == "6.12.12"
    assert RocmPlatform(FakeDevice(MI300X), lambda: agreeing(MI300X)).facts().driver == (module_version() or "70051831")
