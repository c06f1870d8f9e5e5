"""Read from `/proc` which processes there are, and which descend from which."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_STATE, _PARENT, _START_TIME = 0, 1, 19
"""Fields 3, 4 and 22 of `stat` as proc(5) counts them, counted from the one after the name."""
_DEAD = "ZXx"


def all_processes() -> list[int]:
    """Every process that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def descendants(first: int) -> set[int]:
    """`first`, while it is there, and all that it and its children have started and not left to others.

    Reads every process, so that none is missed because another ends meanwhile; `children` is cheaper.
    """
    parents = {process: parent for process in all_processes() if (parent := _parent(process))}
    below: dict[int, list[int]] = {}
    for process, parent in parents.items():
        below.setdefault(parent, []).append(process)
    found, waiting = set(), [first] if first in parents else []
    while waiting:
        process = waiting.pop()
        found.add(process)
        waiting += below.get(process, [])
    return found


def children(process: int) -> Iterator[int]:
    """The children of a process as the kernel lists them; it may leave some out while others end (proc(5))."""
    for thread in _threads(process):
        with suppress(OSError):
            yield from map(int, Path(f"/proc/{process}/task/{thread}/children").read_text(encoding="ascii").split())


def start_time(process: int) -> str:
    """When it began, in the kernel's ticks: a pid may be used again. Empty where it is gone or a zombie."""
    fields = _stat(f"/proc/{process}/stat")
    return fields[_START_TIME] if fields and fields[_STATE] not in _DEAD else ""


def is_dead(process: int) -> bool:
    """Return whether a process is gone, or is a zombie that only waits to be collected by its parent."""
    fields = _stat(f"/proc/{process}/stat")
    return not fields or fields[_STATE] in _DEAD


def thread_states(process: int) -> Iterator[str]:
    """The state of each of its threads, a letter as proc(5) has it; of those that end meanwhile none."""
    for thread in _threads(process):
        if fields := _stat(f"/proc/{process}/task/{thread}/stat"):
            yield fields[_STATE]


def _threads(process: int) -> list[str]:
    """The names of its threads; none where it ends meanwhile, for which pathlib's `glob` raises."""
    try:
        return os.listdir(f"/proc/{process}/task")  # noqa: PTH208
    except OSError:
        return []


def _stat(path: str) -> list[str]:
    """The fields of a `stat` file after the name, which may hold anything: state, parent, …; empty where it is gone."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            text = file.read().decode("ascii", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _parent(process: int) -> int:
    fields = _stat(f"/proc/{process}/stat")
    return int(fields[_PARENT]) if fields else 0
