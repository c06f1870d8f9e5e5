"""Where output goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from arena.processes.printable import printable

_WIDTH = 150  # where nobody tells us: a log or a pipe


class PrintableConsole(Console):
    """A console whose text gives no orders to a terminal: control codes in it are replaced, Rich's own are kept."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as any console does, text made printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def _width(stream: TextIO | None) -> int | None:
    """Return the width to print in, None for that of the terminal; a closed stream is None."""
    return None if stream is not None and stream.isatty() else _WIDTH


out = PrintableConsole(width=_width(sys.stdout))
err = PrintableConsole(stderr=True, width=_width(sys.stderr))


def examples(*lines: str) -> str:
    """The block of examples that every `--help` ends in."""
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(f"  {line}" for line in lines)


def print_json(value: object) -> None:
    """A result for machines: indented JSON on stdout."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.buffer.write(f"{printable(text)}\n".encode())
    sys.stdout.flush()
