"""Where output goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys

import msgspec
from rich.console import Console

_WIDTH = 150  # where nobody tells us: a log or a pipe
out = Console(width=None if sys.stdout.isatty() else _WIDTH)
err = Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH)


def examples(*lines: str) -> str:
    """The block of examples that every `--help` ends in."""
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(f"  {line}" for line in lines)


def print_json(value: object) -> None:
    """A result for machines: indented JSON on stdout."""
    data = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.flush()
