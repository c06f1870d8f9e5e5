"""The file that an agent handed in, as its difference from the task's baseline kernel. All text is made plain here.

Baseline kernels are those of the installed corpus; where a task has changed since the run, the view says so.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from arena.reports.plain import cut, plain
from arena.reports.rows import TrialRow
from arena.reports.transcript_views import DiffLine, diff_lines
from arena.runs.records import submission_folder
from arena.task.corpus.task_folder import TASKS, content_hash
from arena.task.definition import TaskType

MOST_LINES = 3000
"""A longer file is shown as it is, not compared."""
MOST_CHARACTERS = 30_000


@dataclass(frozen=True)
class CodeView:
    """What was handed in: its name, what it is compared with, and the lines."""

    name: str
    note: str
    lines: tuple[DiffLine, ...]


def code_view(row: TrialRow, run: Path) -> CodeView | None:
    """Return the view of what a trial handed in, or None where the run folder `run` holds no such file."""
    folder = submission_folder(run, row.agent, row.task, row.attempt)
    if not folder.resolve().is_relative_to(run.resolve()) or not folder.is_dir():
        return None
    path = next((path for path in sorted(folder.iterdir()) if path.is_file() and not path.is_symlink()), None)
    if path is None:
        return None
    text = plain(path.read_bytes().decode("utf-8", "replace"))
    start, note = _baseline_kernel(row.task, row.task_type, row.task_hash)
    if start and max(text.count("\n"), start.count("\n")) > MOST_LINES:
        start, note = "", "The file is too long to be compared."
    if not start:
        return CodeView(path.name, note, _shown(text, compared=False))
    names = ("baseline kernel", path.name)
    found = "\n".join(difflib.unified_diff(start.split("\n"), text.split("\n"), *names, lineterm=""))
    return CodeView(path.name, note if found else f"Unchanged. {note}", _shown(found, compared=True))


def _shown(text: str, *, compared: bool) -> tuple[DiffLine, ...]:
    if not text:
        return ()
    shown = cut(text, MOST_CHARACTERS)
    parts = [part for part in (shown.head, shown.tail) if part]
    lines = [line for part in parts for line in (diff_lines(part) if compared else _as_it_is(part))]
    gap = [DiffLine("at", f"… {shown.left_out} characters left out of the middle …")] if shown.left_out else []
    return (*gap, *lines)


def _as_it_is(text: str) -> list[DiffLine]:
    return [DiffLine("", line) for line in text.split("\n")]


@lru_cache(maxsize=4096)
def _baseline_kernel(task: str, task_type: str, task_hash: str) -> tuple[str, str]:
    """The text of a task's baseline kernel and what to say of it; no text where there is none."""
    if task_type not in TaskType.__members__.values() or TaskType(task_type).from_pytorch:
        return "", "The task has no baseline kernel."
    folder = TASKS / task
    path = folder / TaskType(task_type).kernel_file
    if not path.resolve().is_relative_to(TASKS.resolve()) or not path.is_file():
        return "", "The baseline kernel is not in the installed corpus."
    note = "Compared with the task's baseline kernel."
    if content_hash(folder) != task_hash:
        note = "Compared with the baseline kernel of the installed corpus. The task has changed since the run."
    return plain(path.read_text(encoding="utf-8")), note
