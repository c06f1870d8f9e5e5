"""How a GPU is doing while it is measured: clocks, temperature, and who else uses it. Asked of the vendor's own tool.

Only a diagnostic: where the tool is missing nothing is known, and nothing is said. `rocm-smi` and `amd-smi` print
different things from release to release, and no AMD GPU was at hand, so AMD devices are not asked yet.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from arena import process

_FIELDS = "clocks.sm,clocks.max.sm,temperature.gpu,utilization.gpu,clocks_event_reasons.active"
_OLD_FIELDS = _FIELDS.replace("clocks_event_reasons", "clocks_throttle_reasons")
_SLOWED = {
    0x4: "the power cap",
    0x8: "a hardware slowdown",
    0x20: "the driver's thermal limit",
    0x40: "the hardware's thermal limit",
    0x80: "the power brake",
}
_CLOCK_SHARE = 0.9
_HOT_C = 85


@dataclass(frozen=True)
class Condition:
    """Clocks in MHz, temperature in °C; `slowed_by` are the reasons that the driver gives for lower clocks."""

    clock_mhz: float
    most_mhz: float
    temperature_c: float
    utilization: float
    slowed_by: tuple[str, ...] = ()


def condition() -> Condition | None:
    """The first visible NVIDIA GPU's, or None where nobody can be asked."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    for fields in (_FIELDS, _OLD_FIELDS):
        asked = [tool, f"--query-gpu={fields}", "--format=csv,noheader,nounits", "--id=0"]
        found = parse(process.run(asked, timeout_s=10.0).output)
        if found is not None:
            return found
    return None


def parse(line: str) -> Condition | None:
    """What `nvidia-smi` prints for our query; None where it is something else."""
    try:
        clock, most, temperature, utilization, reasons = (part.strip() for part in line.strip().split(","))
        bits = int(reasons, 16)
        slowed = tuple(name for bit, name in _SLOWED.items() if bits & bit)
        return Condition(float(clock), float(most), float(temperature), float(utilization), slowed)
    except ValueError:
        return None


def failed_checks_of(seen: Condition | None) -> Iterator[str]:
    """What is wrong with measuring in this condition, each with what to do; nothing where it is not known."""
    if seen is None:
        return
    if seen.slowed_by:
        yield f"the clocks are held down by {', '.join(seen.slowed_by)}: cool the device, or raise its limit"
    elif 0 < seen.clock_mhz < _CLOCK_SHARE * seen.most_mhz:
        yield (
            f"the clock is at {seen.clock_mhz:.0f} of {seen.most_mhz:.0f} MHz: fix it with "
            f"`nvidia-smi --lock-gpu-clocks={seen.most_mhz:.0f}`, or measure on a device that is awake"
        )
    if seen.temperature_c >= _HOT_C:
        yield f"the device is at {seen.temperature_c:.0f} °C: let it cool"
