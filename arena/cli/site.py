"""`arena site`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import err, examples, out

EXAMPLES = examples(
    "arena site runs/monday runs/tuesday --out site",
    "arena verify runs/monday && arena site runs/monday --out site   # with what was judged again",
)


def site(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", exists=True, file_okay=False)],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder of the site; an earlier site in it is replaced.")],
) -> None:
    """Write a leaderboard of many runs as a static site. Needs no GPU and no torch.

    RUN.verification/verification.json, as `arena verify` writes it, and RUN.audit.yaml beside a run folder raise its
    verification level. What lies inside of a run folder never does. The verdicts of RUN.verdicts.yaml, which
    `arena audit` begins, are shown beside the agent.

    Exit code 3: a run folder is malformed.
    """
    from rich.markup import escape

    from arena.reports.site import write_site
    from arena.reports.site_entries import read_entries

    entries = read_entries(runs)
    index = write_site(entries, out_dir)
    for entry in entries:
        for note in entry.notes:
            err.print(f"[yellow]warning[/yellow]: {escape(f'{entry.name}: {note}')}", highlight=False, soft_wrap=True)
    out.print(f"site: {index}", highlight=False, soft_wrap=True)
