"""`arena doctor`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from arena.checks.doctor.evidence import ItemOutcome, ItemResult
from arena.checks.doctor.inventory import Check
from arena.checks.doctor.timing import TimingErrors
from arena.cli.console import err, examples, out, print_json
from arena.cli.devices import DEVICES, LOCK_CLOCKS, Platform, with_locked_clocks
from arena.errors import ArenaError, UsageError
from arena.results.record import LONG_MS

if TYPE_CHECKING:
    from arena.checks.doctor.evidence import ItemResult
    from arena.checks.doctor.report import DoctorReport, MachineReport


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


EXAMPLES = examples(
    "arena doctor",
    "arena doctor --json",
    "arena doctor --quick",
    "arena doctor --quick --platform rocm --item 'buffer shared' --item 'two clocks'",
    "arena doctor --timing --platform cuda",
    "arena doctor --full --platform cuda --devices all --out runs/doctor --seconds 1500",
    "arena doctor --full --item tests --item cheats",
    "arena doctor --full --platform rocm --report doctor-mi300x.json",
)
QUICK = typer.Option("--quick", help="Run kernels, share buffers, cross-compile; a minute.")
TIMING = typer.Option("--timing", help="Measure the timing error on kernels of known duration.")
FULL = typer.Option("--full", help="Both, all tests and all tasks; hours; can be resumed.")
OUT = typer.Option("--out", help="With --full: folder for logs and results.")
REPORT = typer.Option(help="Also write FILE.json to attach to an issue: device, versions, results and logs.")
ITEM = typer.Option(help="With --quick: only items with this text in their names. With --full: only this step.")


def doctor(
    quick: Annotated[bool, QUICK] = False,
    timing: Annotated[bool, TIMING] = False,
    full: Annotated[bool, FULL] = False,
    platform: Platform = "auto",
    item: Annotated[list[str] | None, ITEM] = None,
    devices: Annotated[str, DEVICES] = "",
    folder: Annotated[Path, OUT] = Path("runs/doctor"),
    seconds: Annotated[float | None, typer.Option(help="With --full: limit on the total time.", min=1)] = None,
    lock_clocks: Annotated[bool, LOCK_CLOCKS] = False,
    again: Annotated[bool, typer.Option("--again", help="With --full: repeat what has passed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    report: Annotated[Path | None, REPORT] = None,
) -> None:
    """Test this installation: what the machine has and lacks, and what that costs.

    Exit code 1 if nothing can be evaluated here, an item fails, or the timing error is too large; 2 if
    --full ran out of time.
    """
    if quick + timing + full > 1:
        raise UsageError("--quick, --timing and --full exclude each other; --full does all of it")
    if lock_clocks and not timing:
        raise UsageError("--lock-clocks goes with --timing")
    if as_json and full:
        raise UsageError("--full has no --json: its results are in the folder of --out, in steps.json")
    asked = DoctorOptions(platform, tuple(item or ()), as_json=as_json, lock_clocks=lock_clocks)
    reporting = ReportFile.of(report, platform)
    if full:
        code = _full(asked, devices, folder.resolve(), seconds, reporting, again=again)
    else:
        code = 0 if _one_level("quick" if quick else "timing" if timing else "inventory", asked, reporting) else 1
    raise typer.Exit(code)


@dataclass(frozen=True)
class DoctorOptions:
    """Options of every level."""

    platform: str
    only: tuple[str, ...]
    as_json: bool
    lock_clocks: bool


@dataclass(frozen=True)
class ReportFile:
    """The file for a report, and the machine as it was before anything was run."""

    file: Path
    machine: MachineReport

    @classmethod
    def of(cls, file: Path | None, platform: str) -> ReportFile | None:
        """Describe the machine where a report is asked for; raises `UsageError` where none can be written."""
        if file is None:
            return None
        from arena.checks.doctor.report import check_writable, describe_machine

        check_writable(file)
        with err.status("describing this machine"):
            return cls(file, describe_machine(platform))

    def write(self, report: DoctorReport) -> None:
        """Write it, and say so beside the results."""
        from arena.checks.doctor.report import write_report

        write_report(self.file, report)
        size_kb = self.file.stat().st_size / 1e3
        line = f"report: {self.file} ({size_kb:.0f} kB); read it before you send it"
        err.print(line, markup=False, highlight=False, soft_wrap=True)


def _one_level(level: str, asked: DoctorOptions, reporting: ReportFile | None) -> bool:
    """Run one level, report it if asked, also where it ends early; return whether it is good."""
    from arena.checks.doctor.evidence import ItemOutcome
    from arena.checks.doctor.inventory import all_checks
    from arena.cli import doctor as output

    items: tuple[ItemResult, ...] = ()
    good, timing, problem = False, None, ""
    try:
        if level == "quick":
            items = output.show_quick(asked.platform, asked.only, as_json=asked.as_json)
            good = all(result.outcome is not ItemOutcome.FAIL for result in items)
        elif level == "timing":
            timing = output.show_timing(asked.platform, as_json=asked.as_json, lock_clocks=asked.lock_clocks)
            good = timing.holds
        else:
            checks = (reporting and reporting.machine.inventory) or all_checks()
            good = output.show_inventory(checks, as_json=asked.as_json)
    except ArenaError as failure:
        problem = str(failure)
        raise
    finally:
        if reporting is not None:
            from arena.checks.doctor.report import DoctorLevel, new_report

            found = new_report(DoctorLevel(level), reporting.machine, items=items, timing=timing, problem=problem)
            reporting.write(found)
    return good


def _full(
    asked: DoctorOptions,
    devices: str,
    folder: Path,
    seconds: float | None,
    reporting: ReportFile | None,
    *,
    again: bool,
) -> int:
    """Run the steps, a line for each, and report them if asked; return the exit code."""
    from arena.checks.doctor.full import checkout, chosen_steps, run_full, steps

    if checkout() is None:
        out.print("no checkout of the repository here: the steps with tests and cheat fixtures are left out")
    platform = asked.platform
    chosen = chosen_steps(steps(platform, devices, folder), asked.only)
    deadline = time.monotonic() + seconds if seconds is not None else float("inf")
    tell = partial(out.print, markup=False, soft_wrap=True)
    code = run_full(chosen, folder, deadline, tell, platform=platform, again=again)
    if reporting is not None:
        from arena.checks.doctor.report import full_report

        reporting.write(full_report(reporting.machine, chosen, folder, platform))
    return code
