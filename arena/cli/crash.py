"""Report an internal error: a file with the traceback, and one line that names it."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import arena
from arena.errors import ArenaError, what_was_raised
from arena.processes.printable import printable, shortened

_CHARACTERS = 300


class InternalError(ArenaError):
    """The command failed in a way that nobody foresaw. The message names the file with the traceback."""


def without_traceback(said: str) -> str:
    """Return one line for an error of another process whose text holds a traceback, which goes to a file."""
    from arena.processes.error_line import first_error_line

    before = said.partition("Traceback (most recent call last)")[0].split("\n")[-1]
    what = shortened(before + first_error_line(said, _CHARACTERS), _CHARACTERS)
    file = _written(printable(f"{_machine()}\n{said}\n"))
    return f"{what}; {'no file could be written' if file is None else f'please report it with the traceback in {file}'}"


def _machine() -> str:
    return f"arena {arena.__version__}, Python {platform.python_version()}, {platform.platform()}"


def internal_error(problem: BaseException) -> InternalError:
    """Write down the traceback of the exception that is handled, and return the error to end with."""
    lines = str(problem).strip().splitlines()
    what = shortened(": ".join((type(problem).__name__, *lines[:1])), _CHARACTERS)
    text = f"{_machine()}\n{what_was_raised()}"
    file = _written(printable(text))
    if file is None:
        return InternalError(f"internal error: {what}; no file could be written, please report this:\n{text}")
    return InternalError(f"internal error: {what}; please report it with the traceback in {file}")


def _written(text: str) -> Path | None:
    """Write a new file that only the user may read, in the first folder that takes it."""
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(prefix=time.strftime("crash-%Y%m%d-%H%M%S-"), suffix=".txt", dir=folder)
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            continue
        return Path(name)
    return None


def _folders() -> Iterator[Path]:
    """Yield the user's folder for logs and the like, then the folder for temporary files."""
    base = os.environ.get("XDG_STATE_HOME", "")
    with suppress(RuntimeError):  # this user has no home
        yield (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "unseen-arena"
    with suppress(OSError):  # no folder takes a file
        yield Path(tempfile.gettempdir())
