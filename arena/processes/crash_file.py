"""Write a traceback to a new file, so that a terminal shows one line. Used by the command and its children.

Imports nothing of the package but `printable`: it runs where anything else may be broken.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import arena
from arena.processes.printable import printable, shortened

_CHARACTERS = 300


def name_and_text(problem: BaseException) -> str:
    """Return the type of an exception and the first line of its text, cut to fit a line."""
    lines = str(problem).strip().splitlines()
    return shortened(": ".join((type(problem).__name__, *lines[:1])), _CHARACTERS)


def write(traceback: str) -> Path | None:
    """Write a traceback with versions in front, in the first folder that takes it; None where none does."""
    machine = f"arena {arena.__version__}, Python {platform.python_version()}, {platform.platform()}"
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(prefix=time.strftime("crash-%Y%m%d-%H%M%S-"), suffix=".txt", dir=folder)
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(printable(f"{machine}\n{traceback}"))
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
