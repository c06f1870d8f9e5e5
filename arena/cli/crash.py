"""Report an internal error: a file with the traceback, and one line that names it."""

from __future__ import annotations

from arena.errors import ArenaError, what_was_raised
from arena.processes import crash_file
from arena.processes.printable import shortened

_CHARACTERS = 300


class InternalError(ArenaError):
    """The command failed in a way that nobody foresaw. The message names the file with the traceback."""


def without_traceback(text: str) -> str:
    """Return one line for an error of another process whose text holds a traceback, which goes to a file."""
    from arena.processes.error_line import first_error_line

    before = text.partition("Traceback (most recent call last)")[0].split("\n")[-1]
    what = shortened(before + first_error_line(text, _CHARACTERS), _CHARACTERS)
    file = crash_file.write(f"{text}\n")
    return f"{what}; {'no file could be written' if file is None else f'please report it with the traceback in {file}'}"


def internal_error(problem: BaseException) -> InternalError:
    """Write down the traceback of the exception that is handled, and return the error to end with."""
    what, text = crash_file.name_and_text(problem), what_was_raised()
    file = crash_file.write(text)
    if file is None:
        return InternalError(f"internal error: {what}; no file could be written, please report this:\n{text}")
    return InternalError(f"internal error: {what}; please report it with the traceback in {file}")
