"""`arena site`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import err, examples, out

EXAMPLES = examples(
    "arena site runs/monday runs/tuesday --out site",
    "arena verify runs/monday && arena site runs/monday --findings findings --out site   # with what was judged again",
)


def site(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", exists=True, file_okay=False)],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder of the site; an earlier site in it is replaced.")],
    findings: Annotated[
        Path | None,
        typer.Option(help="Your own folder of verifications, audits and verdicts.", exists=True, file_okay=False),
    ] = None,
) -> None:
    """Write a leaderboard of many runs as a static site. Needs no GPU and no torch.

    Records are claims. An agent is ranked where each of its kernels was judged again, by the files of --findings:
    */verification.json, as `arena verify` writes it to findings/RUN, RUN.audit.yaml and RUN.verdicts.yaml, which
    `arena audit` begins. Nothing in or beside a run folder is believed.

    Exit code 3: a run folder is malformed.
    """
    from rich.markup import escape

    from arena.reports.site import write_site
    from arena.reports.site_entries import read_entries

    entries = read_entries(runs, findings)
    index = write_site(entries, out_dir)
    for entry in entries:
        for note in entry.notes:
            err.print(f"[yellow]warning[/yellow]: {escape(f'{entry.name}: {note}')}", highlight=False, soft_wrap=True)
    out.print(f"site: {index}", highlight=False, soft_wrap=True)
