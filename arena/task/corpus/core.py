"""The core of the shipped corpus: few tasks that stand for all, for evaluations that cost less.

`tasks/CORE.json` lists them; `python tools/claims.py --core` chooses them, anew with each release.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from arena.errors import UsageError
from arena.task.corpus.task_folder import TASKS

FILE = "CORE.json"
NAME = "core"
"""the pattern that stands for these tasks"""


@cache
def core_tasks() -> tuple[str, ...]:
    """Return their ids."""
    return tuple(json.loads((TASKS / FILE).read_text(encoding="utf-8")))


def with_core(patterns: Iterable[str], ids: Sequence[str]) -> Iterator[str]:
    """Yield patterns with the ids of the core in place of `core`, and left out in place of `!core`.

    Args:
        patterns: As `selection.select` takes them.
        ids: Of all tasks that may be chosen.

    Raises:
        UsageError: `core` is asked for, and a task of it is not among `ids`.
    """
    for pattern in patterns:
        if pattern.removeprefix("!") != NAME:
            yield pattern
            continue
        missing = [name for name in core_tasks() if name not in ids]
        if missing:
            raise UsageError(f"`{NAME}` names tasks of the shipped corpus, and {missing[0]} is not among these")
        yield from (pattern.removesuffix(NAME) + name for name in core_tasks())
