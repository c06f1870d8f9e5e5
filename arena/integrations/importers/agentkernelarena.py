"""AgentKernelArena: kernels that a run left in its workspaces, as candidates for the agent `replay`.

Nothing of a run is executed here. A candidate runs later where every candidate does: in the sandbox.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from arena.errors import FileError, UsageError
from arena.task.corpus.corpora import Corpora
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task

RESULT = "task_result.yaml"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class ReplayRow:
    """One workspace: the task and file it became a candidate of, or why it became none."""

    workspace: str
    theirs: str
    task: str
    file: str
    problem: str = ""


def import_run(run: Path, corpora: Corpora, out: Path) -> list[ReplayRow]:
    """Copy the kernel of every workspace to `<out>/<task id>/<attempt>/kernel.{py,hip}`.

    Raises `UsageError` where `run` holds no workspace, or `out` candidates already.
    """
    results = sorted(run.rglob(RESULT))
    if not results:
        raise UsageError(f"{run}: no {RESULT} in it; expected a run folder of AgentKernelArena")
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; give a new folder")
    attempts: dict[str, int] = {}
    return [_candidate(result, run, corpora, out, attempts) for result in results]


def _candidate(result: Path, run: Path, corpora: Corpora, out: Path, attempts: dict[str, int]) -> ReplayRow:
    workspace = result.parent
    row = ReplayRow(str(workspace.relative_to(run)), "", "", "")
    try:
        data = yaml.safe_load(result.read_text(encoding="utf-8", errors="replace"))
    except yaml.YAMLError as problem:
        return _without(row, f"{RESULT} is malformed: {problem}")
    if not isinstance(data, dict) or not isinstance(data.get("task_name"), str):
        return _without(row, f"{RESULT} names no task")
    row = ReplayRow(row.workspace, data["task_name"], "", "")
    ids = _ids(data["task_name"], corpora)
    if len(ids) != 1:
        return _without(row, f"{len(ids)} tasks of the corpus have its type and name")
    try:
        task = load_task(corpora.folders[ids[0]])
    except FileError as problem:
        return _without(row, str(problem))
    row = ReplayRow(row.workspace, row.theirs, task.id, "")
    file = next(_kernels(workspace, task, data), None)
    if file is None:
        return _without(row, f"no {Path(task.task_type.kernel_file).suffix} file defines `{task.entry}`")
    attempts[task.id] = attempts.get(task.id, 0) + 1
    place = out / task.id / str(attempts[task.id])
    place.mkdir(parents=True)
    shutil.copyfile(file, place / task.task_type.kernel_file)
    return ReplayRow(row.workspace, row.theirs, task.id, str(place / task.task_type.kernel_file))


def _without(row: ReplayRow, problem: str) -> ReplayRow:
    return ReplayRow(row.workspace, row.theirs, row.task, "", " ".join(problem.split())[:300])


def _ids(theirs: str, corpora: Corpora) -> list[str]:
    """Tasks of the same type whose name is the last part of theirs, in any spelling."""
    task_type, _, rest = theirs.partition("/")
    wanted = _plain(rest.rsplit("/", 1)[-1])
    named = [one.split("/") for one in corpora.ids]
    return ["/".join(parts) for parts in named if parts[0] == task_type and _plain(parts[-1]) == wanted]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _kernels(workspace: Path, task: Task, data: dict[str, Any]) -> Iterator[Path]:
    """Files of the workspace that define the task's entry, first those that the result names."""
    given = data.get("best_optimized_source_file_path") or []
    named = [workspace / str(name) for name in (given if isinstance(given, list) else [given])]
    suffix = Path(task.task_type.kernel_file).suffix
    found: Sequence[Path] = [*named, *sorted(workspace.rglob(f"*{suffix}"))]
    entry = re.escape(task.entry)
    definition = rf"^def {entry}\s*\(" if task.task_type.triton else rf"\b{entry}\s*\([^;{{]*\)\s*\{{"
    for path in found:
        inside = path.resolve().is_relative_to(workspace.resolve())
        if not (inside and path.is_file() and path.suffix == suffix and path.stat().st_size <= _MOST_BYTES):
            continue
        if re.search(definition, path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE):
            yield path
