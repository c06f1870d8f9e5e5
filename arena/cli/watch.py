"""Wait until a file changes, for `arena evaluate --watch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

POLL_S = 0.3
_State = tuple[int, int]


def changes(file: Path, sleep: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Yield at once, and then whenever the file has another time or size and has kept both for a poll.

    A file that is missing or empty is still being written.
    """
    known = _state(file)
    yield
    while True:
        before = _state(file)
        sleep(POLL_S)
        now = _state(file)
        if now is not None and now == before and now != known and now[1]:
            known = now
            yield


def _state(file: Path) -> _State | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
