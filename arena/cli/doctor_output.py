"""What `arena doctor` prints: the inventory, items as they end, and the timing errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext

from rich.markup import escape
from rich.table import Table

from arena.checks.doctor.evidence import ItemOutcome, ItemResult
from arena.checks.doctor.inventory import Check
from arena.checks.doctor.timing import TimingErrors
from arena.cli.console import err, out, print_json
from arena.cli.devices import with_locked_clocks
from arena.results.record import LONG_MS

_COLOURS = {
    ItemOutcome.PASS: "green",
    ItemOutcome.WARNING: "yellow",
    ItemOutcome.FAIL: "red",
    ItemOutcome.SKIPPED: "dim",
}


def show_inventory(checks: Sequence[Check], *, as_json: bool) -> bool:
    """Print what the machine has; return whether nothing needed is missing."""
    if as_json:
        print_json(checks)
    else:
        out.print(inventory_table(checks))
    return not any(check.needed and not check.present for check in checks)


def inventory_table(checks: Sequence[Check]) -> Table:
    """Return a row for each check."""
    table = Table("", "what", "found", "without it")
    for check in checks:
        colour = "green" if check.present else ("red" if check.needed else "yellow")
        mark = "yes" if check.present else "no"
        cost = "" if check.present else escape(check.cost)
        table.add_row(f"[{colour}]{mark}[/{colour}]", check.name, escape(check.found), cost)
    return table


def show_quick(platform: str, only: Sequence[str], *, as_json: bool) -> tuple[ItemResult, ...]:
    """Run the items and print each as it ends; return the results."""
    from arena.checks.doctor.quick import run_quick

    with err.status("reading the device") as status:

        def ended(result: ItemResult) -> None:
            if not as_json:
                out.print(item_line(result), soft_wrap=True)
            status.update(f"after {result.name}")

        results = run_quick(platform, ended, only)
    if as_json:
        print_json(results)
    else:
        out.print(item_counts(results))
    return results


def item_line(result: ItemResult) -> str:
    """Return how an item ended, its name, seconds, and what was seen."""
    colour = _COLOURS[result.outcome]
    mark = f"[{colour}]{result.outcome:<8}[/{colour}]"
    return f"{mark} {escape(result.name):<26} {result.seconds:5.1f} s  {escape(result.seen)}"


def item_counts(results: Sequence[ItemResult]) -> str:
    """Return how many ended how, and how long it took."""
    counts = Counter(result.outcome for result in results)
    words = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ItemOutcome if counts[outcome])
    return f"{words} in {sum(result.seconds for result in results):.0f} s"


def show_timing(platform: str, *, as_json: bool, lock_clocks: bool = False) -> TimingErrors:
    """Measure the timing error, print it and return it."""
    from arena.checks.doctor.timing import check_timing

    locked = with_locked_clocks(platform) if lock_clocks else nullcontext()
    with locked, err.status("starting the judge") as status:
        found = check_timing(platform, lambda kernel: status.update(f"timing {kernel}"))
    if as_json:
        print_json(found)
    else:
        out.print(timing_table(found))
        for warning in found.warnings:
            out.print(f"warning: {warning}", markup=False, soft_wrap=True)
        out.print(timing_verdict(found), markup=False)
    return found


def timing_table(found: TimingErrors) -> Table:
    """Return a row for each case."""
    shown = Table("kernel", "count", "compared with", "expected ms", "measured ms", "95 % interval", "error")
    for one in found.known:
        interval = f"{one.low_ms:.5g} .. {one.high_ms:.5g}"
        error = "anchor" if one.anchor else f"{one.error:+.2%}"
        figures = (f"{one.expected_ms:.5g}", f"{one.measured_ms:.5g}")
        shown.add_row(one.kernel, str(one.count), one.scale, *figures, interval, error)
    return shown


def timing_verdict(found: TimingErrors) -> str:
    """Return the worst error, what is allowed, and where it was measured."""
    device = found.environment.device
    if found.worst is None:
        return f"no kernel took {LONG_MS * 1e3:.0f} µs or more on {device.name}: the timing error is unknown"
    held = "within" if found.holds else "beyond"
    emulated = "; latencies are those of an emulation" if device.emulated else ""
    return (
        f"worst error {found.worst:.2%}, {held} the {found.band:.0%} allowed, over {len(found.counting)} cases of "
        f"{LONG_MS * 1e3:.0f} µs and more on {device.name} (platform {device.platform}{emulated})"
    )
