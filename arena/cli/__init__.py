"""The command line: the only part of the package that prints or exits. Importing it is cheap: no torch, no pandas."""

from __future__ import annotations

import gc
import sys

from arena.errors import ArenaError
from arena.printable import printable


class Interrupted(ArenaError):
    """Ctrl-C ended a command. The message says what is left of its work."""

    exit_code = 130


def main() -> None:
    """Run a command; errors and Ctrl-C become one line on stderr and the exit code of their kind."""
    gc.set_threshold(50_000, 20, 20)  # tasks and records are many objects that stay: a tenth of a short command's time
    try:
        from arena.cli.app import app

        app(standalone_mode=True)
    except ArenaError as problem:
        _end(problem)
    except KeyboardInterrupt:
        _end(Interrupted("interrupted"))


def _end(problem: ArenaError) -> None:
    print(printable(f"arena: {problem}"), file=sys.stderr)  # noqa: T201
    raise SystemExit(problem.exit_code) from None
