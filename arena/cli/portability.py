"""`arena portability`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import examples, out, print_json

EXAMPLES = examples(
    "arena portability runs/h200 runs/mi300x",
    "arena portability runs/h200 runs/mi300x runs/mi355x --json",
)


def portability(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, of two kinds of GPU or more.", exists=True, file_okay=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="The table as JSON.")] = False,
) -> None:
    """Compare how much of the roofline agents reach on several kinds of GPU: efficiency and performance portability."""
    from arena.reports.performance_portability import portability_markdown, portability_table
    from arena.runs.records import by_device
    from arena.runs.submission import read_folder

    table = portability_table([part for path in runs for part in by_device(read_folder(path))])
    if as_json:
        print_json(table)
    else:
        out.print(portability_markdown(table), markup=False, highlight=False)
