"""Outputs of `amd-smi` and `rocm-smi`, written by hand in known forms. None is from a GPU of ours.

| form | source |
| --- | --- |
| `throttle`; `throttle_status` of `N/A` on MI300 | AMD, "GPU violations" (amdsmi, develop); change log of ROCm 6.3 |
| metrics as a list, `value` and `unit` | an output of April 2025 in issue 737 of henrygd/beszel |
| metrics in `gpu_data` | an output of a Radeon AI PRO in 2026; `gfx_0`, `max_clk` of 0, `N/A` |
| three forms of `limit` | `amdsmi_cli/amdsmi_commands.py` of ROCm/amdsmi, three states of its history |
| processes, `mem_usage` of 0, the warning about groups | issue 130 of ROCm/amdsmi (25.3.0, ROCm 6.4.0) |
| a process listed for every GPU | issue 2292 of ROCm/legacy-rocm-build |
| `rocm-smi` | an output of an MI300X, and rocm_smi_lib's names of sensors |

Which version of `amd-smi` introduced `gpu_data` was not found, so names here are by form, not by version.
"""

from __future__ import annotations

import json
from typing import Any


def unit(value: float, name: str) -> dict[str, object]:
    """A number as `amd-smi --json` prints it."""
    return {"value": value, "unit": name}


def clock(mhz: float, most: float) -> dict[str, object]:
    """A clock domain of `amd-smi metric --clock`."""
    least: dict[str, object] = {"min_clk": unit(132, "MHz"), "clk_locked": "DISABLED", "deep_sleep": "DISABLED"}
    return {"clk": unit(mhz, "MHz"), "max_clk": unit(most, "MHz"), **least}


UNUSED = dict.fromkeys(("clk", "min_clk", "max_clk", "clk_locked", "deep_sleep"), "N/A")
QUIET = dict.fromkeys(
    (
        "prochot_violation_status",
        "ppt_violation_status",
        "socket_thermal_violation_status",
        "vr_thermal_violation_status",
        "hbm_thermal_violation_status",
    ),
    "NOT ACTIVE",
)

MI300X: dict[str, Any] = {
    "gpu": 0,
    "usage": {"gfx_activity": unit(97, "%"), "umc_activity": unit(1, "%"), "mm_activity": "N/A"},
    "power": {"socket_power": unit(305, "W"), "throttle_status": "N/A", "power_management": "ENABLED"},
    "clock": {"gfx_0": clock(2106, 2100), "gfx_1": clock(2100, 2100), "gfx_2": UNUSED, "mem_0": clock(900, 1300)},
    "temperature": {"edge": "N/A", "hotspot": unit(49, "C"), "mem": unit(43, "C")},
    "throttle": {"accumulation_counter": 11240028, **QUIET, "low_utilization_violation_status": "ACTIVE"},
}
"""an MI300X under load"""
RADEON: dict[str, Any] = {
    "gpu": 1,
    "usage": {"gfx_activity": unit(0, "%")},
    "power": {"socket_power": unit(20, "W"), "throttle_status": "UNTHROTTLED", "power_management": "ENABLED"},
    "clock": {"gfx_0": {**clock(14, 2482)}, "mem_0": clock(96, 1249)},
    "temperature": {"edge": unit(30, "C"), "hotspot": unit(31, "C"), "mem": unit(40, "C")},
}
"""a Radeon of gpu_metrics 1.3 at rest"""

LIMIT_FIRST = {"gpu": 0, "limit": {"max_power": 750, "current_power": 500}}
LIMIT_FLAT = {
    "gpu": 0,
    "limit": {"max_power": unit(750, "W"), "min_power": unit(0, "W"), "socket_power": unit(500, "W")},
}
LIMIT_NESTED = {
    "gpu": 0,
    "limit": {
        "ppt0": {"socket_power_limit": unit(500, "W"), "max_power_limit": unit(750, "W")},
        "ppt1": "N/A",
        "slowdown_hotspot_temperature": unit(100, "C"),
    },
}

GROUPS = "WARNING: User is missing the following required groups: render, video. Please add user to these groups.\n"


def old(*entries: object) -> str:
    """The list that older versions print, after the warning that a user outside of two groups gets."""
    return GROUPS + json.dumps(entries, indent=4)


def new(*entries: object) -> str:
    """The object that newer versions print."""
    return json.dumps({"gpu_data": entries}, indent=4)


def user(pid: int, vram: float, *, total: float = 0.0) -> dict[str, object]:
    """A process of `amd-smi process --json`: `mem_usage` may be 0 where `vram_mem` is not (issue 130)."""
    sizes = {"gtt_mem": unit(0, "B"), "cpu_mem": unit(0, "B"), "vram_mem": unit(vram, "B")}
    return {"process_info": {"name": "python3", "pid": pid, "memory_usage": sizes, "mem_usage": unit(total, "B")}}


NOBODY = {"gpu": 0, "process_list": [{"process_info": "No running processes detected"}]}

ROCM_SMI = json.dumps(
    {
        "card0": {
            "Temperature (Sensor junction) (C)": "45.0",
            "Temperature (Sensor memory) (C)": "38.0",
            "sclk clock speed:": "(132Mhz)",
            "sclk clock level:": "1",
            "GPU use (%)": "0",
            "Max Graphics Package Power (W)": "750.0",
        }
    }
)
"""an MI300X, which has no edge sensor"""
