"""The commit of a folder that the user names."""

from __future__ import annotations

import subprocess
from pathlib import Path

_GIT_S = 60


def commit_of(folder: Path) -> str:
    """Return the commit of a checkout or of a part of one; empty for a folder that merely lies inside of one."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    is_part = top and (Path(top) == folder.resolve() or _git(folder, "ls-files", "--", "."))
    return _git(folder, "rev-parse", "HEAD") if is_part else ""


def _git(folder: Path, *asked: str) -> str:
    command = ["git", "-C", str(folder), *asked]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=_GIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
