"""The start of the command: `--help` loads Typer, Rich and the commands' options, and nothing that does the work."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"asyncio", "hashlib", "importlib.metadata", "jinja2", "jsonschema", "numpy", "pandas", "torch", "yaml"}
WORKING = (
    "arena.agents",
    "arena.api",
    "arena.task.corpus.",
    "arena.processes.http_server",
    "arena.judge",
    "arena.results.record",
    "arena.task.definition",
    "arena.reports",
    "arena.runs",
    "arena.runs.service",
)
LIGHT = {"arena.task.corpus.split"}
"""the choices of an option"""


def test_help_loads_no_module_that_does_the_work() -> None:
    code = "import sys, arena.cli.app; print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(printed.split())
    assert {"arena.cli.run", "arena.cli.verify"} <= loaded
    assert not loaded & HEAVY
    assert not {name for name in loaded - LIGHT if name.startswith(WORKING)}
