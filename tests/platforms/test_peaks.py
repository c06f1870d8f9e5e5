"""The table of peaks: every product once, found by the names that drivers report, rooflines by hand."""

from __future__ import annotations

import pytest

from arena.platforms.peaks import PEAKS, find_peaks, of_partition
from arena.results.environment import DeviceFacts

PRODUCTS = (
    *("MI210", "MI250X", "MI300A", "MI300X", "MI325X", "MI350X", "MI355X"),
    *("RX 7900 XTX", "PRO W7900", "RX 9070", "RX 9070 XT"),
    *("A100", "H100", "H200", "B200", "B300", "RTX PRO 6000 Blackwell"),
)
FORMATS = ("float64", "float32", "float16", "int8")


@pytest.mark.parametrize("product", PRODUCTS)
def test_every_product_stands_once(product: str) -> None:
    assert [row.product for row in PEAKS].count(product) == 1


@pytest.mark.parametrize("row", PEAKS, ids=lambda row: row.product)
def test_figures_are_sane(row: object) -> None:
    (found,) = [peaks for peaks in PEAKS if peaks is row]
    assert found.source and (found.cache_bytes >= 1 << 20 or found.arch.startswith("sm_"))
    assert 500 < found.bandwidth_gbs < 10_000
    rates = [found.tflops[name] for name in FORMATS if name in found.tflops]
    assert len(rates) >= 3 and rates == sorted(rates)
    assert found.tflops["bfloat16"] == found.tflops["float16"]
    assert all(rate > 0 for rate in found.tflops.values())


@pytest.mark.parametrize(
    ("name", "arch", "product"),
    [
        ("AMD Instinct MI210", "gfx90a", "MI210"),
        ("AMD Instinct MI250X/MI250", "gfx90a", "MI250X"),
        ("AMD Instinct MI250X / MI250", "gfx90a", "MI250X"),
        ("AMD Instinct MI300X", "gfx942", "MI300X"),
        ("AMD Instinct MI300X VF", "gfx942", "MI300X"),
        ("AMD Instinct MI300X_VF", "gfx942", "MI300X"),
        ("AMD Instinct MI325X", "gfx942", "MI325X"),
        ("AMD Instinct MI300A", "gfx942", "MI300A"),
        ("AMD Instinct MI350X", "gfx950", "MI350X"),
        ("AMD Instinct MI355X", "gfx950", "MI355X"),
        ("AMD Radeon RX 9070 XT", "gfx1201", "RX 9070 XT"),
        ("AMD Radeon RX 9070", "gfx1201", "RX 9070"),
        ("AMD Radeon PRO W7900", "gfx1100", "PRO W7900"),
        ("AMD Radeon RX 7900 XTX", "gfx1100", "RX 7900 XTX"),
        ("Radeon RX 7900 XTX", "gfx1100", "RX 7900 XTX"),
        ("NVIDIA A100-SXM4-80GB", "sm_80", "A100"),
        ("NVIDIA A100 80GB PCIe", "sm_80", "A100"),
        ("NVIDIA H100 80GB HBM3", "sm_90", "H100"),
        ("NVIDIA H100 PCIe", "sm_90", "H100"),
        ("NVIDIA H200", "sm_90", "H200"),
        ("NVIDIA H200 NVL", "sm_90", "H200"),
        ("NVIDIA B200", "sm_100", "B200"),
        ("NVIDIA B300 SXM6 AC", "sm_103", "B300"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm_120", "RTX PRO 6000 Blackwell"),
    ],
)
def test_found_by_the_name_a_driver_reports(name: str, arch: str, product: str) -> None:
    row = find_peaks(name, arch)
    assert row is not None and row.product == product


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("NVIDIA H200", "sm_80"),
        ("NVIDIA GH200 480GB", "sm_90"),
        ("NVIDIA A10", "sm_86"),
        ("AMD Radeon RX 7900 XT", "gfx1100"),
        ("AMD Instinct MI308X", "gfx942"),
        ("NVIDIA GB300", "sm_103"),
        ("", ""),
    ],
)
def test_an_unknown_device_has_no_row(name: str, arch: str) -> None:
    assert find_peaks(name, arch) is None


def test_an_h100_nvl_is_not_held_to_the_bandwidth_of_an_sxm_module() -> None:
    """Its memory is faster (3.9 TB/s): the lower bound would call honest kernels implausible."""
    row = find_peaks("NVIDIA H100 NVL", "sm_90")
    assert row is not None and row.bandwidth_gbs > 3900


def device(name: str, arch: str) -> DeviceFacts:
    row = find_peaks(name, arch)
    assert row is not None
    return DeviceFacts(
        platform="rocm",
        vendor="amd",
        arch=arch,
        name=name,
        wave_size=64,
        memory_bytes=0,
        last_level_cache_bytes=row.cache_bytes,
        peak_bandwidth_gbs=row.bandwidth_gbs,
        peak_tflops=row.tflops,
    )


def test_rooflines_by_hand() -> None:
    """5300 GB/s move 5.3 GB in a millisecond; 1307.4 TFLOP/s do 1.3074e12 operations in one, 0.4358e12 as float32."""
    mi300x = device("AMD Instinct MI300X", "gfx942")
    assert mi300x.roofline_ms(0, 5.3e9, "float16") == pytest.approx(1.0)
    assert mi300x.roofline_ms(1.3074e12, 1e6, "float16") == pytest.approx(1.0)
    assert mi300x.roofline_ms(0.6537e12, 1e6, "tf32") == pytest.approx(1.0)
    assert mi300x.roofline_ms(0.4358e12, 1e6, "float32") == pytest.approx(1.0)
    mi210 = device("AMD Instinct MI210", "gfx90a")
    assert mi210.roofline_ms(181e9 / 3, 1e3, "float32") == pytest.approx(1.0)
    assert mi210.roofline_ms(1e15, 1638.4e6, "float8_e4m3fn") == pytest.approx(1.0)


@pytest.mark.parametrize(("mode", "units"), [("DPX", 152), ("QPX", 76), ("CPX", 38)])
def test_a_partition_has_the_rates_of_its_compute_units(mode: str, units: int) -> None:
    """Bandwidth and cache belong to the memory, all of which a partition may reach: they stay bounds."""
    whole = find_peaks("AMD Instinct MI300X", "gfx942")
    assert whole is not None
    part = of_partition(whole, units)
    assert part.tflops["float16"] == pytest.approx(1307.4 * units / 304)
    assert set(part.tflops) == set(whole.tflops)
    assert (part.bandwidth_gbs, part.cache_bytes) == (5300.0, 256 << 20)
    assert f"{units} of 304 compute units" in part.source


@pytest.mark.parametrize(("name", "arch", "units"), [("MI300X", "gfx942", 304), ("RX 9070 XT", "gfx1201", 32)])
def test_whole_products_and_those_without_partitions_keep_their_rates(name: str, arch: str, units: int) -> None:
    """HIP counts workgroup processors on RDNA, half as many as compute units."""
    row = find_peaks(name, arch)
    assert row is not None and of_partition(row, units) is row
    assert of_partition(row, 0) is row
