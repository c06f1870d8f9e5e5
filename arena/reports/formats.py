"""Numbers as text, formatted once, at the edge."""

from __future__ import annotations

from arena.reports.intervals import Method, Quantity
from arena.reports.measure import Unit
from arena.results.environment import Environment
from arena.results.record import Estimate

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
        return "[one task: no interval]" if quantity.tasks == 1 else "[no interval]"
    source = ", timing of one task" if quantity.method is Method.TIMING else ""
    return f"[{number(quantity.low, unit)}, {number(quantity.high, unit)}{source}]"


def quantity(value: Quantity | None, unit: Unit) -> str:
    """A value with its interval, or a dash."""
    return NONE if value is None else f"{number(value.value, unit)} {interval(value, unit)}"


def counted(value: Quantity | None, unit: Unit) -> str:
    """A value with its interval and its denominator, or a dash: `12.5 % [2.2 %, 47.1 %] of 8`."""
    return NONE if value is None else f"{quantity(value, unit)} of {value.count:g}"


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


def ratio_of(part: object, whole: object) -> str:
    """`4/5`, or a dash where there is nothing to count."""
    return f"{part}/{whole}" if whole else NONE


def device_line(environment: Environment) -> str:
    """The device in one line: name, arch, platform."""
    device = environment.device
    return f"{device.name} ({device.arch}, {device.platform})"


def size(count: int) -> str:
    """A small amount of memory: `512 B`, `36 KiB`, `1.5 KiB`."""
    return f"{count} B" if count < 1024 else f"{round(count / 1024, 1):g} KiB"


def percent(share: float | None) -> str:
    """A share of one in per cent, as short as it goes, or a dash: `50 %`, `12.5 %`."""
    return NONE if share is None else f"{100 * share:.3g} %"


def clock(seconds: float) -> str:
    """A span of time as minutes and seconds: `2:05`, `1:02:05`."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def count(number: int) -> str:
    """A number of tokens, short: `950`, `12.3k`, `1.2M`."""
    if abs(number) < 1000:
        return str(number)
    return f"{number / 1e3:.1f}k" if abs(number) < 999_950 else f"{number / 1e6:.1f}M"


def dollars(amount: float) -> str:
    """US dollars, to the cent where there are any: `$1.24`, `$0.0032`."""
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.2g}"
