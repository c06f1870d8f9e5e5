"""Condition and processes of an NVIDIA GPU, as `nvidia-smi` prints them. Used by `condition.py`."""

from __future__ import annotations

from arena.platforms.smi import Condition, ask, visible_name

_FIELDS = "clocks.sm,clocks.max.sm,temperature.gpu,utilization.gpu,clocks_event_reasons.active"
_OLD_FIELDS = _FIELDS.replace("clocks_event_reasons", "clocks_throttle_reasons")
_SLOWED = {
    0x4: "the power cap",
    0x8: "a hardware slowdown",
    0x20: "the driver's thermal limit",
    0x40: "the hardware's thermal limit",
    0x80: "the power brake",
}
_TOOL = "nvidia-smi"


def condition(device: int) -> Condition | None:
    """Return the condition of a visible GPU, or None where it is not known."""
    name = _name(device)
    for fields in (_FIELDS, _OLD_FIELDS) if name else ():
        found = parse(ask(_TOOL, f"--query-gpu={fields}", "--format=csv,noheader,nounits", f"--id={name}") or "", name)
        if found is not None:
            return found
    return None


def processes(device: int) -> frozenset[int] | None:
    """Return the pids that use a visible GPU, or None where they are not known."""
    name = _name(device)
    text = ask(_TOOL, "--query-compute-apps=pid", "--format=csv,noheader", f"--id={name}") if name else None
    return None if text is None else parse_processes(text)


def parse(line: str, name: str = "0") -> Condition | None:
    """Return the condition in a line of `nvidia-smi --query-gpu` for GPU `name`; None where it is something else."""
    try:
        clock, most, temperature, utilization, reasons = (part.strip() for part in line.strip().split(","))
        bits = int(reasons, 16)
        slowed = tuple(reason for bit, reason in _SLOWED.items() if bits & bit)
        mhz = float(most)
        return Condition(
            float(clock),
            mhz,
            float(temperature),
            float(utilization),
            slowed,
            lock_command=f"{_TOOL} --id={name} --lock-gpu-clocks={mhz:.0f}",
            reset_command=f"{_TOOL} --id={name} --reset-gpu-clocks",
        )
    except ValueError:
        return None


def parse_processes(text: str) -> frozenset[int] | None:
    """Return the pids in the output of `nvidia-smi --query-compute-apps=pid`; None where it is something else."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return frozenset(map(int, lines)) if all(line.isdigit() for line in lines) else None


def _name(device: int) -> str:
    return visible_name(device, "CUDA_VISIBLE_DEVICES")
