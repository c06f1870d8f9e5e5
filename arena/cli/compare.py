"""`arena compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import examples, out, print_json

EXAMPLES = examples(
    "arena compare runs/monday runs/tuesday                     # where each run has one agent",
    "arena compare runs/monday runs/tuesday --first-agent codex --second-agent codex",
    "arena compare runs/quickstart runs/quickstart --first-agent honest --second-agent fast",
)


def compare(
    first: Annotated[Path, typer.Argument(help="A run folder.", exists=True, file_okay=False)],
    second: Annotated[Path, typer.Argument(help="Another run folder, or the same.", exists=True, file_okay=False)],
    first_agent: Annotated[
        str | None, typer.Option(help="Agent of the first run; required where it has several.")
    ] = None,
    second_agent: Annotated[
        str | None, typer.Option(help="Agent of the second run; required where it has several.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as JSON.")] = False,
) -> None:
    """Compare two runs, or two agents of one, paired by task and case, with intervals and paired tests."""
    from arena.reports.compare import compare_runs, only_agent
    from arena.reports.tables import comparison_markdown
    from arena.runs.submission import read_folder

    one, two = read_folder(first), read_folder(second)
    agents = only_agent(one, first_agent, "--first-agent"), only_agent(two, second_agent, "--second-agent")
    comparison = compare_runs(one, two, *agents)
    if as_json:
        print_json(comparison)
    else:
        out.print(comparison_markdown(comparison), markup=False, highlight=False)
