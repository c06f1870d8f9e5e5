"""`arena doctor`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.console import err, examples, out
from arena.cli.devices import DEVICES, LOCK_CLOCKS, Platform
from arena.errors import ArenaError, UsageError

if TYPE_CHECKING:
    from arena.checks.doctor.evidence import ItemResult
    from arena.checks.doctor.report import DoctorReport, MachineReport

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
    from arena.cli import doctor_output as output

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
