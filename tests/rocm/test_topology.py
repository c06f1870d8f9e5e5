"""The files by which the simulated device is described, without running anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.rocm.topology import GPU_ID, KFD, MI300X, Gpu, files, write

DRIVER = Path(__file__).with_name("driver") / "driver.h"


def properties(gpu: Gpu = MI300X, place: str = "nodes/1/properties") -> dict[str, int]:
    lines = files(gpu)[KFD / place].splitlines()
    return {name: int(value) for name, value in map(str.split, lines)}


def test_an_mi300x_has_304_compute_units_of_four_simds_in_eight_dies() -> None:
    found = properties()
    assert (found["simd_count"], found["simd_per_cu"], found["num_xcc"]) == (1216, 4, 8)
    assert (found["wave_front_size"], found["gfx_target_version"], found["device_id"]) == (64, 90402, 0x74A1)
    assert found["array_count"] * found["cu_per_simd_array"] >= 304


def test_the_stepping_of_an_architecture_is_hexadecimal() -> None:
    assert replace(MI300X, arch="gfx90a").target_version == 90010
    assert replace(MI300X, arch="gfx1201").target_version == 120001


def test_caches_are_counted_and_in_kib() -> None:
    assert properties()["caches_count"] == 3
    assert [properties(place=f"nodes/1/caches/{n}/properties")["size"] for n in range(3)] == [32, 4096, 262144]


def test_topology_and_driver_give_the_device_one_number(tmp_path: Path) -> None:
    write(tmp_path)
    assert (tmp_path / KFD / "nodes/1/gpu_id").read_text(encoding="ascii") == f"{GPU_ID}\n"
    assert f"#define GPU_ID {GPU_ID}u" in DRIVER.read_text(encoding="utf-8")
