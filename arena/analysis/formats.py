"""Numbers as text, formatted once, at the edge."""

from __future__ import annotations

from arena.analysis.intervals import Quantity
from arena.analysis.measures import Unit
from arena.model.environment import Environment
from arena.model.record import Estimate

NONE = "–"
EMULATED = "latencies of an emulation (cpu platform), not of a GPU"


def number(value: float, unit: Unit) -> str:
    """A value in its unit: `83.3 %`, `1.25×`, `245.0`."""
    if unit is Unit.SHARE:
        return f"{100 * value:.1f} %"
    if unit is Unit.FACTOR:
        return f"{value:.2f}×"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def interval(quantity: Quantity, unit: Unit) -> str:
    """The interval in brackets, or that there is none."""
    if quantity.low is None or quantity.high is None:
        return "[one task: no interval]"
    return f"[{number(quantity.low, unit)}, {number(quantity.high, unit)}]"


def quantity(value: Quantity | None, unit: Unit) -> str:
    """A value with its interval, or a dash."""
    return NONE if value is None else f"{number(value.value, unit)} {interval(value, unit)}"


def speedup(value: Estimate | None) -> str:
    """A speedup with its interval, or a dash."""
    return NONE if value is None else f"{value.value:.2f}× [{value.low:.2f}, {value.high:.2f}]"


def latency(value: Estimate | None) -> str:
    """A latency in the unit that keeps it readable."""
    if value is None:
        return NONE
    if value.value >= 1:
        return f"{value.value:.3g} ms" if value.value < 100 else f"{value.value:.0f} ms"
    return f"{1000 * value.value:.3g} µs"


def ratio_of(part: int, whole: int) -> str:
    """`4/5`, or a dash where there is nothing to count."""
    return f"{part}/{whole}" if whole else NONE


def device_line(environment: Environment) -> str:
    """The device in one line: name, arch, platform."""
    device = environment.device
    return f"{device.name} ({device.arch}, {device.platform})"
