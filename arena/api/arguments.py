"""Checks of arguments that Python would accept and misread, such as a text in place of a list."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TypeVar

from arena.errors import UsageError
from arena.results.effort import Effort

Item = TypeVar("Item")


def listed(name: str, given: Iterable[Item]) -> tuple[Item, ...]:
    """Return the items of a list as a tuple; raises `UsageError` for a text, a path, and what is no list."""
    if isinstance(given, str | PathLike) or not isinstance(given, Iterable):
        raise UsageError(f"`{name}` takes a list, not {given!r}; expected {name}=[{given!r}]")
    return tuple(given)


def task_name(given: object) -> str:
    """Return what names a task as text; raises `UsageError` unless it is text or a path."""
    if not isinstance(given, str | PathLike):
        raise UsageError(f"{given!r} names no task; expected an id, a bare name or a task folder")
    return str(given)


def device_number(given: int | None) -> int | None:
    """Return the number of a GPU; raises `UsageError` for what counts nothing."""
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
        raise UsageError(f"{given!r} is no device; GPUs are numbered from 0")
    return given


def effort_level(given: str | None) -> Effort | None:
    """Return a level of effort; raises `UsageError` where there is none of that name."""
    if given is not None and given not in list(Effort):
        raise UsageError(f"{given!r} is no effort; expected one of: {', '.join(Effort)}")
    return None if given is None else Effort(given)
