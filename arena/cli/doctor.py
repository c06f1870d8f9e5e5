"""`arena doctor`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from arena.cli.console import examples, out, print_json
from arena.cli.doctor_checks import Check, all_checks
from arena.platforms import NAMES

EXAMPLES = examples(
    "arena doctor",
    "arena doctor --json",
    "arena doctor --self-test",
    "arena doctor --self-test --platform rocm",
    "arena doctor --self-test --platform rocm --item 'buffer shared' --item 'two clocks'",
    "arena doctor --self-test --platform cpu --json",
)


def doctor(
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Try it: run kernels, share buffers, time, cross-compile.")
    ] = False,
    platform: Annotated[str, typer.Option(help="For --self-test: auto, cpu, cuda or rocm.")] = "auto",
    item: Annotated[
        list[str] | None, typer.Option(help="For --self-test: only items with this text in their names.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say what this machine has, what it lacks, and what that costs. Exit code 1 if nothing can be evaluated here.

    With --self-test: try everything that measuring needs, item by item. Exit code 1 if an item fails.
    """
    if platform not in ("auto", *NAMES):
        raise typer.BadParameter(f"expected auto, {', '.join(NAMES)}", param_hint="--platform")
    if self_test:
        from arena.cli.doctor_self_test import show

        raise typer.Exit(0 if show(platform, item or (), as_json=as_json) else 1)
    checks = all_checks()
    if as_json:
        print_json(checks)
    else:
        out.print(_table(checks))
    if any(check.needed and not check.present for check in checks):
        raise typer.Exit(1)


def _table(checks: tuple[Check, ...]) -> Table:
    table = Table("", "what", "found", "without it")
    for check in checks:
        colour = "green" if check.present else ("red" if check.needed else "yellow")
        mark = "yes" if check.present else "no"
        cost = "" if check.present else escape(check.cost)
        table.add_row(f"[{colour}]{mark}[/{colour}]", check.name, escape(check.found), cost)
    return table
