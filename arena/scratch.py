"""Temporary folders that name their process, so that what a killed process left behind can be told and removed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = re.compile(r"arena-[a-z]+-([0-9]+)-")


def scratch(what: str) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder for `what`, a lower-case word; a context manager that removes it."""
    return tempfile.TemporaryDirectory(prefix=prefix(what), ignore_cleanup_errors=True)


def prefix(what: str) -> str:
    """How the name of such a folder begins, for those who make and remove it themselves."""
    return f"arena-{what}-{os.getpid()}-"


def sweep() -> int:
    """Remove the folders of processes that are no more, and return how many there were."""
    left = []
    for path in Path(tempfile.gettempdir()).glob("arena-*"):
        found = _NAME.match(path.name)
        if found and path.is_dir() and not path.is_symlink() and not _lives(int(found[1])):
            left.append(path)
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return len(left)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
