"""Options on tasks and cases, for every command that takes a task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TasksDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--tasks-dir",
        envvar="ARENA_TASKS_DIR",
        help="Folder of tasks in place of the shipped ones; repeatable.",
    ),
]
