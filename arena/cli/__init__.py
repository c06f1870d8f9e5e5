"""The command line: the only part of the package that prints or exits. Importing it is cheap: no torch, no pandas."""

from __future__ import annotations

import sys

from arena.errors import ArenaError
from arena.printable import printable

INTERRUPTED = 130


def main() -> None:
    """Run a command; errors become one line on stderr and the exit code of their kind."""
    from arena.cli.app import app

    try:
        app(standalone_mode=True)
    except ArenaError as problem:
        print(printable(f"arena: {problem}"), file=sys.stderr)  # noqa: T201
        raise SystemExit(problem.exit_code) from None
    except KeyboardInterrupt:
        print("arena: interrupted; the same command resumes a run", file=sys.stderr)  # noqa: T201
        raise SystemExit(INTERRUPTED) from None
