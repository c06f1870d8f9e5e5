"""`arena evaluate --self-check`: the timing error on kernels of known duration."""

from __future__ import annotations

from rich.table import Table

from arena.cli.console import err, out, print_json
from arena.judge.self_check import LONG_MS, SelfCheck, self_check


def show_self_check(platform: str, *, as_json: bool) -> bool:
    """Run the check and print it; whether the error is within the band."""
    with err.status("waiting for the judge") as status:
        found = self_check(platform, lambda kernel: status.update(f"timing {kernel}"))
    if as_json:
        print_json(found)
    else:
        out.print(table(found))
        for warning in found.warnings:
            out.print(f"warning: {warning}", markup=False, soft_wrap=True)
        out.print(verdict(found), markup=False)
    return found.holds


def table(found: SelfCheck) -> Table:
    """A row for each case."""
    shown = Table("kernel", "count", "held against", "expected ms", "measured ms", "95 % interval", "error")
    for one in found.known:
        interval = f"{one.low_ms:.5g} .. {one.high_ms:.5g}"
        error = "anchor" if one.anchor else f"{one.error:+.2%}"
        figures = (f"{one.expected_ms:.5g}", f"{one.measured_ms:.5g}")
        shown.add_row(one.kernel, str(one.count), one.scale, *figures, interval, error)
    return shown


def verdict(found: SelfCheck) -> str:
    """The worst error, what is allowed, and where it was measured."""
    device = found.environment.device
    if found.worst is None:
        return f"no kernel took {LONG_MS * 1e3:.0f} µs or more on {device.name}: nothing can be said"
    held = "within" if found.holds else "beyond"
    emulated = "; latencies are those of an emulation" if device.emulated else ""
    return (
        f"worst error {found.worst:.2%}, {held} the {found.band:.0%} allowed, over {len(found.counting)} cases of "
        f"{LONG_MS * 1e3:.0f} µs and more on {device.name} (platform {device.platform}{emulated})"
    )
