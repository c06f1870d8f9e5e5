"""`arena agents`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from arena.cli.console import examples, out, print_json

EXAMPLES = examples("arena agents", "arena agents --json")


def agents(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the kinds of agent that a run configuration can name."""
    from arena.agents import kinds

    if as_json:
        print_json(kinds())
        return
    table = Table("kind", "what it does")
    for name, about in kinds().items():
        table.add_row(name, about)
    out.print(table)
