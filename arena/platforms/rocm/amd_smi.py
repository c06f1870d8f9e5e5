"""Condition and processes of an AMD GPU, as `amd-smi` and `rocm-smi` print them in JSON. Used by `condition.py`.

No AMD GPU was available: the parsers follow AMD's documentation and source, and are tested on outputs of that form.
Layouts: older versions of `amd-smi` print a list of GPUs, newer ones an object with `gpu_data`. Both are accepted;
in any other layout nothing is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from arena.platforms.smi import Condition, ask, visible_name

_HOT_C = 90.0
"""°C of the hotspot, 10 below where an MI200 slows down"""
_VIOLATIONS = {
    "prochot_violation_status": "the hardware's thermal limit (PROCHOT)",
    "ppt_violation_status": "the power cap",
    "socket_thermal_violation_status": "the socket's thermal limit",
    "vr_thermal_violation_status": "the voltage regulator's thermal limit",
    "hbm_thermal_violation_status": "the memory's thermal limit",
}
_NUMBER = re.compile(r"\(?(-?\d+(?:\.\d+)?)")
_Entry = Mapping[str, Any]


def condition(device: int) -> Condition | None:
    """Return the condition of a visible GPU, or None where it is not known."""
    gpu = _index(device)
    if gpu is None:
        return None
    metric = ask("amd-smi", "metric", "--gpu", str(gpu), "--json")
    found = (
        None if metric is None else parse(metric, gpu, ask("amd-smi", "static", "--gpu", str(gpu), "--limit", "--json"))
    )
    if found is not None:
        return found
    shown = ("--showtemp", "--showclocks", "--showuse", "--showmaxpower", "--json")
    old = ask("rocm-smi", "--device", str(gpu), *shown)
    return None if old is None else parse_rocm_smi(old, gpu)


def processes(device: int) -> frozenset[int] | None:
    """Return the pids that use a visible GPU, or None where they are not known. `rocm-smi` names no GPU: not asked."""
    gpu = _index(device)
    text = None if gpu is None else ask("amd-smi", "process", "--gpu", str(gpu), "--json")
    return None if gpu is None or text is None else parse_processes(text, gpu)


def parse(metric: str, gpu: int, limits: str | None = None) -> Condition | None:
    """Return the condition in the output of `amd-smi metric --json`, or None where the layout is another.

    Args:
        metric: output of `amd-smi metric --json`.
        gpu: index of the GPU, as `amd-smi` counts.
        limits: output of `amd-smi static --limit --json`, if there is one.
    """
    entry = _entry(metric, gpu)
    clocks = [clock for name, clock in _section(entry, "clock").items() if name.startswith("gfx_")]
    temperature = _number(_section(entry, "temperature").get("hotspot"))
    current = [mhz for clock in clocks if (mhz := _number(_field(clock, "clk"))) is not None]
    if temperature is None or not current:
        return None
    most = max((mhz for clock in clocks if (mhz := _number(_field(clock, "max_clk"))) is not None), default=0.0)
    cap, most_power = _power(_section(_entry(limits or "", gpu), "limit"))
    return Condition(
        clock_mhz=min(current),
        most_mhz=most,
        temperature_c=temperature,
        utilization=_number(_section(entry, "usage").get("gfx_activity")) or 0.0,
        slowed_by=tuple(_slowed(entry)),
        power_cap_w=cap,
        most_power_w=most_power,
        hot_c=_HOT_C,
        lock_command=f"amd-smi set --gpu {gpu} --perf-determinism {most:.0f}" if most else "",
        reset_command=f"amd-smi reset --gpu {gpu} --perf-determinism",
    )


def parse_rocm_smi(text: str, gpu: int) -> Condition | None:
    """Return the condition in the output of `rocm-smi --json`, which names no greatest clock and no throttling."""
    found = _json(text)
    card = _section(found if isinstance(found, dict) else {}, f"card{gpu}")
    clock = _number(card.get("sclk clock speed:"))
    temperature = _number(card.get("Temperature (Sensor junction) (C)"))
    if clock is None or temperature is None:
        return None
    return Condition(
        clock_mhz=clock,
        most_mhz=0.0,
        temperature_c=temperature,
        utilization=_number(card.get("GPU use (%)")) or 0.0,
        power_cap_w=_number(card.get("Max Graphics Package Power (W)")) or 0.0,
        hot_c=_HOT_C,
    )


def parse_processes(text: str, gpu: int) -> frozenset[int] | None:
    """Return the pids in the output of `amd-smi process --json`, or None where the layout is another.

    `amd-smi` may list a process for every GPU of the machine: one that holds no memory of this GPU does not count.
    """
    listed = _entry(text, gpu).get("process_list")
    if not isinstance(listed, list):
        return None
    found = set()
    for item in listed:
        told = _field(item, "process_info")
        if isinstance(told, str) and told.startswith("No running processes"):
            continue
        pid = _number(_field(told, "pid"))
        if pid is None:
            return None
        sizes = list(_sizes(told))
        if not sizes or max(sizes) > 0:
            found.add(int(pid))
    return frozenset(found)


def _sizes(told: _Entry) -> Iterator[float]:
    """The memory of the device that a process holds, as far as it is told."""
    for size in (told.get("mem_usage"), _field(told.get("memory_usage"), "vram_mem")):
        number = _number(size)
        if number is not None:
            yield number


def _slowed(entry: _Entry) -> Iterator[str]:
    """The reasons for lower clocks: `throttle_status` up to MI200 and on Radeon, violations from MI300 on."""
    throttle = _section(entry, "throttle")
    reasons = [name for key, name in _VIOLATIONS.items() if throttle.get(key) == "ACTIVE"]
    yield from reasons
    if not reasons and _section(entry, "power").get("throttle_status") == "THROTTLED":
        yield "a limit on power, current or temperature"


def _power(limit: _Entry) -> tuple[float, float]:
    """The power cap and the greatest one: newer versions nest them in `ppt0`, the first had `current_power`."""
    newest = _section(limit, "ppt0")
    cap = newest.get("socket_power_limit", limit.get("socket_power", limit.get("current_power")))
    return _number(cap) or 0.0, _number(newest.get("max_power_limit", limit.get("max_power"))) or 0.0


def _index(device: int) -> int | None:
    """The index that `amd-smi` gives to a visible GPU; None for one that is named by its UUID, or hidden."""
    name = visible_name(device, "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    if name.isdigit():
        name = visible_name(int(name), "ROCR_VISIBLE_DEVICES")
    return int(name) if name.isdigit() else None


def _entry(text: str, gpu: int) -> _Entry:
    """The object of one GPU; empty where there is none."""
    found = _json(text)
    listed = found.get("gpu_data") if isinstance(found, dict) else found
    for entry in listed if isinstance(listed, list) else []:
        if _field(entry, "gpu") == gpu:
            return dict(entry)
    return {}


def _json(text: str) -> object:
    """The JSON in an output, which warnings may precede; None where there is none."""
    start = re.search(r"^[\[{]", text, re.MULTILINE)
    try:
        return json.JSONDecoder().raw_decode(text, start.start())[0] if start else None
    except ValueError:
        return None


def _section(entry: _Entry, name: str) -> _Entry:
    found = entry.get(name)
    return found if isinstance(found, dict) else {}


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _number(value: object) -> float | None:
    """A number, also as `{"value": 1, "unit": "W"}`, `"1 W"` or `"(1Mhz)"`; None for `N/A`."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str):
        match = _NUMBER.match(value)
        return float(match[1]) if match else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
