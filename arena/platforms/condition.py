"""The condition of GPUs before and while they are measured: clocks, temperature, other processes.

Used by `arena doctor`, `arena run` and `arena evaluate`, and never by a judge: each question starts a vendor's tool.
Only a diagnostic: where the tool is missing nothing is known, and nothing is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from arena.platforms.cuda import nvidia_smi
from arena.platforms.rocm import amd_smi
from arena.platforms.smi import Condition
from arena.processes.process_table import descendants

_VENDORS = {"cuda": (nvidia_smi,), "rocm": (amd_smi,), "auto": (nvidia_smi, amd_smi)}
_CLOCK_SHARE = 0.9
_POWER_SHARE = 0.8
"""less than a Radeon's cap as delivered, which is about 0.87 of the greatest"""


def condition(platform: str = "auto", device: int | None = None) -> Condition | None:
    """Return the condition of a visible GPU, the first if `device` is None; None where it is not known."""
    found = (vendor.condition(device or 0) for vendor in _VENDORS.get(platform, ()))
    return next((one for one in found if one is not None), None)


def other_processes(platform: str = "auto", device: int | None = None) -> int | None:
    """Return how many processes use a visible GPU that this one has not started; None where it is not known.

    A tool in a container may give pids of the machine. Ask before a judge starts: then none of them is ours.
    """
    found = (vendor.processes(device or 0) for vendor in _VENDORS.get(platform, ()))
    listed = next((one for one in found if one is not None), None)
    return None if listed is None else len(listed - descendants(os.getpid()))


def warnings_before(platform: str, devices: Sequence[int | None] = (None,), choice: str = "") -> list[str]:
    """Return warnings about GPUs that are to be measured, a line each.

    Args:
        platform: `auto`, `cuda` or `rocm`; for any other there are none.
        devices: numbers among the visible GPUs; None is the first.
        choice: the option that selects another GPU; empty: the environment variable does.
    """

    def warnings_of(device: int | None) -> list[str]:
        texts = [*failed_checks_of(condition(platform, device), idle=True)]
        if count := other_processes(platform, device):
            texts.append(_shared(count, choice or _variable(platform)))
        return [f"GPU {device}: {text}" for text in texts] if len(devices) > 1 else texts

    with ThreadPoolExecutor(max_workers=max(1, len(devices))) as pool:
        return [text for texts in pool.map(warnings_of, devices) for text in texts]


def failed_checks_of(seen: Condition | None, *, idle: bool = False) -> Iterator[str]:
    """Yield what is wrong with measuring in this condition, each with what to do; nothing where it is not known.

    Args:
        seen: the condition of the device.
        idle: whether it has had no work, which lowers the clock of any device.
    """
    if seen is None:
        return
    if seen.slowed_by:
        yield f"the clocks are held down by {', '.join(seen.slowed_by)}: cool the device, or raise its limit"
    elif not idle and 0 < seen.clock_mhz < _CLOCK_SHARE * seen.most_mhz:
        fix = f"fix it with `{seen.lock_command}`, or " if seen.lock_command else ""
        yield (
            f"the clock is at {seen.clock_mhz:.0f} of {seen.most_mhz:.0f} MHz: {fix}measure on a device that is awake"
        )
    if 0 < seen.power_cap_w < _POWER_SHARE * seen.most_power_w:
        yield f"the power cap is {seen.power_cap_w:.0f} of {seen.most_power_w:.0f} W: raise it"
    if seen.temperature_c >= seen.hot_c:
        yield f"the device is at {seen.temperature_c:.0f} °C: let it cool"


def _shared(count: int, choice: str) -> str:
    users = "1 other process uses" if count == 1 else f"{count} other processes use"
    return f"{users} this GPU: timings are not to be trusted; wait, or choose another with {choice}"


def _variable(platform: str) -> str:
    return "HIP_VISIBLE_DEVICES" if platform == "rocm" else "CUDA_VISIBLE_DEVICES"
