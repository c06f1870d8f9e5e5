"""`arena doctor`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import examples, out
from arena.cli.devices import DEVICES, LOCK_CLOCKS, Platform
from arena.errors import UsageError

EXAMPLES = examples(
    "arena doctor",
    "arena doctor --json",
    "arena doctor --quick",
    "arena doctor --quick --platform rocm --item 'buffer shared' --item 'two clocks'",
    "arena doctor --timing --platform cuda",
    "arena doctor --full --platform cuda --devices all --out runs/doctor --seconds 1500",
    "arena doctor --full --item tests --item cheats",
)
QUICK = typer.Option("--quick", help="Run kernels, share buffers, cross-compile; a minute.")
TIMING = typer.Option("--timing", help="Measure the timing error on kernels of known duration.")
FULL = typer.Option("--full", help="Both, all tests and all tasks; hours; can be resumed.")
OUT = typer.Option("--out", help="With --full: folder for logs and results.")
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
    if full:
        raise typer.Exit(_full(platform, item or (), devices, folder.resolve(), seconds, again=again))
    from arena.cli import doctor_output as output
    from arena.doctor.inventory import all_checks

    if quick:
        good = output.show_quick(platform, item or (), as_json=as_json)
    elif timing:
        good = output.show_timing(platform, as_json=as_json, lock_clocks=lock_clocks)
    else:
        good = output.show_inventory(all_checks(), as_json=as_json)
    raise typer.Exit(0 if good else 1)


def _full(
    platform: str, only: list[str] | tuple[str, ...], devices: str, folder: Path, seconds: float | None, *, again: bool
) -> int:
    """Run the steps, a line for each; return the exit code."""
    from arena.doctor.full import checkout, chosen_steps, run_full, steps

    if checkout() is None:
        out.print("no checkout of the repository here: the steps with tests and cheat fixtures are left out")
    chosen = chosen_steps(steps(platform, devices, folder), only)
    deadline = time.monotonic() + seconds if seconds is not None else float("inf")
    return run_full(chosen, folder, deadline, lambda line: out.print(line, markup=False, soft_wrap=True), again=again)
