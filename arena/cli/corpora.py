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
MaxWork = Annotated[
    float | None,
    typer.Option(
        help="Skip cases whose operations plus bytes of all tensors exceed this; "
        "at least the two smallest seen and the two smallest held-out cases are kept.",
        min=1,
    ),
]
Execute = Annotated[
    bool,
    typer.Option("--execute", help="Also execute the machine code for gfx942 or gfx950 on the CPU, one small case."),
]
