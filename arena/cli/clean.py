"""`arena clean`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from arena.cli.console import examples, out
from arena.errors import UsageError

EXAMPLES = examples(
    "arena clean                       # build and Triton caches",
    "arena clean --run runs/quickstart # one run folder",
)


def clean(
    run: Annotated[list[Path] | None, typer.Option(help="Delete this run folder instead of the caches.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Print what would be deleted, and delete nothing.")] = False,
) -> None:
    """Delete build caches, or the run folders named by --run. Other records are kept."""
    from arena.platforms.toolchains.hip_build import default_cache_root
    from arena.runs.records import HEAD

    folders = run or [default_cache_root().parent]
    for folder in folders:
        if run and not (folder / HEAD).is_file():
            raise UsageError(f"{folder}: not a run folder (no {HEAD}); nothing was deleted")
    for folder in folders:
        if folder.is_dir():
            out.print(f"{'would delete' if dry_run else 'deleting'} {folder}", highlight=False)
            if not dry_run:
                shutil.rmtree(folder)
        else:
            out.print(f"{folder}: nothing there", highlight=False)
