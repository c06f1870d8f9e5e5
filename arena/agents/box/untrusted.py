"""Read folders that an agent writes: it may put links, pipes or very large files there at any moment."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_candidate(workspace: Path, name: str, most_bytes: int) -> bytes | None:
    """The contents of the file `name` (no folders in it) in `workspace`, or None.

    None where it is missing, is anything but a regular file (a link, a pipe, a folder), or is larger than `most_bytes`.
    """
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        return None
    try:
        folder = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # A pipe opened without O_NONBLOCK would wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with open(os.open(name, flags, dir_fd=folder), "rb", buffering=0) as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return _at_most(file.fileno(), most_bytes)
    except OSError:
        return None
    finally:
        os.close(folder)


def _at_most(file: int, most_bytes: int) -> bytes | None:
    # The size is not asked for: the file may grow between question and reading.
    content = bytearray()
    while len(content) <= most_bytes:
        chunk = os.read(file, min(1 << 20, most_bytes + 1 - len(content)))
        if not chunk:
            return bytes(content)
        content += chunk
    return None
