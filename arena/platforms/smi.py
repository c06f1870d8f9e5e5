"""The condition of a GPU, and how a vendor's tool is asked for it: shared by `nvidia_smi.py` and `amd_smi.py`."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from arena.processes import process

TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Condition:
    """Clocks in MHz, temperatures in °C, power in W; 0 where the tool does not say.

    `slowed_by` are the reasons that the driver gives for lower clocks, `lock_command` fixes the clocks, and
    `reset_command` undoes it.
    """

    clock_mhz: float
    most_mhz: float
    temperature_c: float
    utilization: float
    slowed_by: tuple[str, ...] = ()
    power_cap_w: float = 0.0
    most_power_w: float = 0.0
    hot_c: float = 85.0
    lock_command: str = ""
    reset_command: str = ""


def ask(program: str, *arguments: str, timeout_s: float = TIMEOUT_S) -> str | None:
    """Return what a vendor's tool prints; None where it is missing, fails, or takes longer than `timeout_s`."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        finished = process.run([path, *arguments], timeout_s=timeout_s)
    except OSError:
        return None
    return finished.output if finished.ok else None


def visible_name(device: int, *variables: str) -> str:
    """Return the name of a visible GPU among all of the machine: an index or a UUID, empty for one that is hidden.

    Args:
        device: its number among the visible ones.
        variables: environment variables that hide GPUs; the first that is set counts.
    """
    for variable in variables:
        names = [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]
        if names:
            return names[device] if device < len(names) else ""
    return str(device)
