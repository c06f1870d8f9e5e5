"""The command line: the only part of the package that prints or exits. Importing it is cheap: no torch, no pandas."""

from __future__ import annotations

import errno
import gc
from typing import NoReturn

from arena.cli import streams
from arena.errors import ArenaError, StorageError
from arena.extras import missing_package
from arena.processes.printable import printable
from arena.processes.python_child import leave_start_folder

_TRACEBACK = "Traceback (most recent call last)"


class Interrupted(ArenaError):
    """Ctrl-C ended a command. The message says what is left of its work."""

    exit_code = 130


class Unforeseen(Exception):
    """Carries an exception past Typer, which would end with exit code 1 for it."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem


def main() -> NoReturn:
    """Run a command; errors and Ctrl-C become one line on stderr and the exit code of their kind.

    Exit code 1 is the command's own answer alone: an exception that nobody foresaw ends with 3.
    """
    gc.set_threshold(50_000, 20, 20)  # tasks and records are many objects that stay: a tenth of a short command's time
    streams.prepare()
    leave_start_folder()
    try:
        code = _run()
    except ArenaError as problem:
        code = _told(problem)
    except KeyboardInterrupt:
        code = _told(Interrupted("interrupted"))
    except Exception as problem:
        code = _unforeseen(problem.problem if isinstance(problem, Unforeseen) else problem)
    raise SystemExit(streams.finish(code)) from None


def _run() -> int:
    """Run the command that the command line names, and return its exit code."""
    try:
        from arena.cli.app import app

        app(standalone_mode=True)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Rich and Typer end with 1 then
            return streams.READER_GONE
        if isinstance(ended.code, str):
            streams.say(printable(ended.code))
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _unforeseen(problem: Exception) -> int:
    """Return the exit code for an exception that no command handles, after one line about it."""
    if isinstance(problem, BrokenPipeError) and streams.reader_has_gone():
        return streams.READER_GONE
    if isinstance(problem, ImportError) and (missing := missing_package(problem)):
        return _told(missing)
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
        what = problem.filename or "the output"
        return _told(StorageError(f"{what} could not be written: {problem.strerror}; make room and repeat the command"))
    from arena.cli.crash import internal_error

    return _told(internal_error(problem))


def _told(problem: ArenaError) -> int:
    text = str(problem)
    if _TRACEBACK in text:
        from arena.cli.crash import without_traceback

        text = without_traceback(text)
    streams.say(printable(f"arena: {text}"))
    return problem.exit_code
