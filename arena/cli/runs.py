"""`arena runs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import examples, out, print_json

EXAMPLES = examples(
    "arena runs                          # the run folders below runs/",
    "arena runs --runs-dir /data/runs --json",
)


def runs(
    runs_dir: Annotated[Path, typer.Option(help="Folder of the run folders.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="The list as JSON.")] = False,
) -> None:
    """List runs: how far each one is, its agents and device, minutes and cost so far."""
    from rich.markup import escape
    from rich.table import Table

    from arena.reports.formats import dollars
    from arena.runs.listing import RunState, list_runs

    found = list_runs(runs_dir)
    if as_json:
        print_json(found)
        return
    if not found:
        out.print(f"no run below {runs_dir}; `arena run quickstart` makes one", markup=False, highlight=False)
        return
    table = Table(caption="`arena run CONFIG --name RUN` goes on with a stopped one; `arena report RUNS-DIR/RUN`.")
    for heading in ("run", "state", "trials", "agents", "tasks", "device", "started", "minutes", "cost"):
        table.add_column(heading, justify="right" if heading in ("trials", "tasks", "minutes", "cost") else "left")
    for one in found:
        if one.state is RunState.UNREADABLE:
            table.add_row(escape(one.run), one.state, "", escape(one.problem))
            continue
        counts = f"{one.recorded}/{one.planned}", escape(", ".join(one.agents)), str(one.tasks)
        where = escape(one.device), one.started_at[:16].replace("T", " ")
        table.add_row(escape(one.run), one.state, *counts, *where, f"{one.minutes:.0f}", dollars(one.cost_usd))
    out.print(table)
