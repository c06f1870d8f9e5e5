"""Patterns that choose tasks by id. Used by `corpora.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from arena.errors import UsageError


def select(ids: Sequence[str], patterns: Iterable[str]) -> tuple[str, ...]:
    """Ids that match any pattern: a whole id, a glob (`hip2hip/*`), a bare name, or `!pattern` to leave out.

    Raises `UsageError` for a pattern that matches nothing, with the nearest names.
    """
    patterns = list(patterns)
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    for pattern in [*wanted, *unwanted]:
        if not any(_matches(task_id, pattern) for task_id in ids):
            raise UsageError(_no_match(pattern, ids))
    return tuple(
        task_id
        for task_id in ids
        if any(_matches(task_id, pattern) for pattern in wanted)
        and not any(_matches(task_id, pattern) for pattern in unwanted)
    )


def _matches(task_id: str, pattern: str) -> bool:
    return fnmatchcase(task_id, pattern) or task_id.rsplit("/", 1)[-1] == pattern


def _no_match(pattern: str, ids: Sequence[str]) -> str:
    import difflib

    by_name: dict[str, list[str]] = {}
    for task_id in ids:
        by_name.setdefault(task_id.rsplit("/", 1)[-1], []).append(task_id)
    close = difflib.get_close_matches(pattern, [*ids, *by_name], n=3, cutoff=0.4)
    found = [text for name in close for text in _spelled_out(name, by_name.get(name.rsplit("/", 1)[-1], ()))]
    near = list(dict.fromkeys(found))
    hint = f"; did you mean {', '.join(near)}?" if near else "; `arena tasks list` shows all"
    return f"no task matches {pattern!r}{hint}"


def _spelled_out(name: str, ids: Sequence[str]) -> Sequence[str]:
    """Return how to name a task: its bare name, or the ids of all tasks that share it."""
    if "/" in name:
        return [name]
    return ids if len(ids) > 1 else [name]
