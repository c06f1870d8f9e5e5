"""Outputs of `amd-smi` and `rocm-smi`, written by hand in the forms that AMD documents. None is from a GPU of ours.

Sources: "AMD SMI CLI tool usage" and the change log (rocm.docs.amd.com/projects/amdsmi) of 24.6 (ROCm 6.2), 25.3
(ROCm 6.4), 26.2 (ROCm 7.2) and 26.5 (ROCm 7.14); "GPU violations" of the same; `amdsmi_cli/amdsmi_commands.py` of
ROCm/amdsmi for `static --limit`; issues 130 of ROCm/amdsmi and 2292 of ROCm/legacy-rocm-build for processes.
"""

from __future__ import annotations

import json
from typing import Any


def unit(value: float, name: str) -> dict[str, object]:
    """A number as `amd-smi --json` prints it since 24.6."""
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
"""26.2 on an MI300X, and 25.3 without `gpu_data` around it"""
RADEON: dict[str, Any] = {
    "gpu": 1,
    "usage": {"gfx_activity": unit(0, "%")},
    "power": {"socket_power": unit(20, "W"), "throttle_status": "UNTHROTTLED", "power_management": "ENABLED"},
    "clock": {"gfx_0": {**clock(14, 2482)}, "mem_0": clock(96, 1249)},
    "temperature": {"edge": unit(30, "C"), "hotspot": unit(31, "C"), "mem": unit(40, "C")},
}
"""24.6 on a Radeon of gpu_metrics 1.3"""

LIMIT_24_5 = {"gpu": 0, "limit": {"max_power": 750, "current_power": 500}}
LIMIT_24_6 = {
    "gpu": 0,
    "limit": {"max_power": unit(750, "W"), "min_power": unit(0, "W"), "socket_power": unit(500, "W")},
}
LIMIT_26_2 = {
    "gpu": 0,
    "limit": {
        "ppt0": {"socket_power_limit": unit(500, "W"), "max_power_limit": unit(750, "W")},
        "ppt1": "N/A",
        "slowdown_hotspot_temperature": unit(100, "C"),
    },
}

GROUPS = "WARNING: User is missing the following required groups: render, video. Please add user to these groups.\n"


def old(*entries: object) -> str:
    """The list that 24.6 to 25.3 print, after the warning that a user outside of two groups gets."""
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
"""`rocm-smi` of ROCm 6, on an MI300X without an edge sensor"""
