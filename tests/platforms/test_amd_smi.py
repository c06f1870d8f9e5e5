"""The outputs of `amd-smi` and `rocm-smi` in their documented layouts; `amd_outputs.py` names the documents."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

from arena.platforms.condition import failed_checks_of
from arena.platforms.rocm import amd_smi
from arena.platforms.smi import Condition
from tests.platforms.amd_outputs import (
    LIMIT_FIRST,
    LIMIT_FLAT,
    LIMIT_NESTED,
    MI300X,
    NOBODY,
    RADEON,
    ROCM_SMI,
    new,
    old,
    user,
)

SEEN = Condition(
    2100,
    2100,
    49,
    97,
    hot_c=90,
    lock_command="amd-smi set --gpu 0 --perf-determinism 2100",
    reset_command="amd-smi reset --gpu 0 --perf-determinism",
)


@pytest.mark.parametrize("text", [old(MI300X, RADEON), new(MI300X), new(RADEON, MI300X)])
def test_both_layouts_of_metrics_give_the_same(text: str) -> None:
    found = amd_smi.parse(text, 0)
    assert found == SEEN, "the slowest die counts, and low utilization is no reason"
    assert list(failed_checks_of(found)) == []


def test_a_radeon_at_rest() -> None:
    found = amd_smi.parse(old(MI300X, RADEON), 1)
    assert found is not None and (found.clock_mhz, found.most_mhz, found.temperature_c) == (14, 2482, 31)
    (text,) = failed_checks_of(found)
    assert "14 of 2482 MHz" in text and "amd-smi set --gpu 1 --perf-determinism 2482" in text
    assert list(failed_checks_of(found, idle=True)) == []


def test_throttling_has_its_reasons() -> None:
    entry = copy.deepcopy(MI300X)
    entry["throttle"]["ppt_violation_status"] = entry["throttle"]["hbm_thermal_violation_status"] = "ACTIVE"
    found = amd_smi.parse(new(entry), 0)
    assert found is not None and found.slowed_by == ("the power cap", "the memory's thermal limit")
    older = copy.deepcopy(RADEON)
    older["power"]["throttle_status"] = "THROTTLED"
    found = amd_smi.parse(old(older), 1)
    assert found is not None and found.slowed_by == ("a limit on power, current or temperature",)


@pytest.mark.parametrize("limits", [old(LIMIT_FIRST), old(LIMIT_FLAT), new(LIMIT_NESTED)])
def test_a_low_power_cap_is_a_warning_in_three_layouts(limits: str) -> None:
    found = amd_smi.parse(new(MI300X), 0, limits)
    assert found == replace(SEEN, power_cap_w=500, most_power_w=750)
    assert list(failed_checks_of(found)) == ["the power cap is 500 of 750 W: raise it"]


def test_a_clock_without_a_greatest_one_is_no_warning() -> None:
    entry = copy.deepcopy(MI300X)
    for name in ("gfx_0", "gfx_1"):
        entry["clock"][name]["max_clk"] = "N/A"
    found = amd_smi.parse(new(entry), 0)
    assert found is not None and found.most_mhz == 0 and list(failed_checks_of(found)) == []


def without(section: str) -> dict[str, object]:
    return {name: value for name, value in MI300X.items() if name != section}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AMD-SMI is not supported on this platform",
        "[",
        "[1, 2]",
        '{"0": {"clock": 3}}',
        new(without("temperature")),
        old(without("clock")),
        old({**MI300X, "gpu": 3}),
        old({**MI300X, "clock": "N/A"}),
    ],
)
def test_of_any_other_layout_nothing_is_known(text: str) -> None:
    assert amd_smi.parse(text, 0) is None
    assert amd_smi.parse_processes(text, 0) is None
    assert amd_smi.parse_rocm_smi(text, 0) is None


def test_processes_of_one_gpu() -> None:
    assert amd_smi.parse_processes(old(NOBODY), 0) == frozenset()
    listed = {
        "gpu": 0,
        "process_list": [user(11, 2e9), user(12, 0), user(13, 0, total=5e8), {"process_info": {"pid": 14}}],
    }
    for text in (old(listed, NOBODY), new(listed)):
        assert amd_smi.parse_processes(text, 0) == frozenset({11, 13, 14}), "12 holds no memory of this GPU"
    nameless = {"gpu": 0, "process_list": [{"process_info": {"name": "python3"}}]}
    assert amd_smi.parse_processes(old(nameless), 0) is None


def test_the_older_tool() -> None:
    found = amd_smi.parse_rocm_smi(ROCM_SMI, 0)
    assert found == Condition(132, 0, 45, 0, power_cap_w=750, hot_c=90)
    assert list(failed_checks_of(found)) == []
    hot = json.loads(ROCM_SMI)
    hot["card0"]["Temperature (Sensor junction) (C)"] = "95.0"
    assert list(failed_checks_of(amd_smi.parse_rocm_smi(json.dumps(hot), 0))) == ["the device is at 95 °C: let it cool"]
    assert amd_smi.parse_rocm_smi(ROCM_SMI, 1) is None
