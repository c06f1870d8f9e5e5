"""The folder in which an agent works: the task's text, its files, and `./evaluate`."""

from __future__ import annotations

import shutil
from pathlib import Path

from arena.platforms.by_hand import header_files
from arena.results.environment import Environment
from arena.results.session import Limits
from arena.runs.service.task_text import task_text
from arena.task.corpus.task_folder import SEMANTICS, shared_pieces
from arena.task.definition import Task

TEXT = "TASK.md"
REFERENCE = "reference.py"
SEEN = "seen.yaml"
COMMAND = "evaluate"
_PACKAGE = '"""What reference.py imports; nothing else is here."""\n'
_COMMAND_TEXT = """#!/bin/sh
# Hands the kernel to the judge: ./evaluate --help
if [ -z "$ARENA_TOOLS" ]; then
    echo "evaluate: the judge cannot be reached: ARENA_TOOLS is not set" >&2
    exit 3
fi
ARENA_KERNEL="$(dirname -- "$0")/{kernel}"
export ARENA_KERNEL
exec python3 -I "$ARENA_TOOLS/evaluate.py" "$@"
"""


def prepare(folder: Path, task: Task, environment: Environment, limits: Limits) -> None:
    """Write everything that an agent sees of a task into `folder`, which exists: nothing held out, no expert."""
    (folder / TEXT).write_text(task_text(task, environment, limits), encoding="utf-8")
    if task.baseline_kernel is not None:
        shutil.copyfile(task.baseline_kernel, folder / task.task_type.kernel_file)
    shutil.copyfile(task.path / SEEN, folder / SEEN)
    _put_reference(folder, task.reference_path)
    if not task.task_type.triton:
        _put_headers(folder, task, environment)
    command = folder / COMMAND
    command.write_text(_COMMAND_TEXT.format(kernel=task.task_type.kernel_file), encoding="utf-8")
    command.chmod(0o755)


def prompt_text(folder: Path) -> str:
    """Return what the agent is told: the text of TASK.md."""
    return (folder / TEXT).read_text(encoding="utf-8")


def _put_reference(folder: Path, reference: Path) -> None:
    """reference.py and the modules of `arena.semantics` that it imports, directly or through one another.

    They lie where the import looks for them, `arena/semantics/`, so that it works with the workspace as the current
    folder and PyTorch alone.
    """
    shutil.copyfile(reference, folder / REFERENCE)
    pieces = shared_pieces([reference])
    if pieces:
        package = folder / "arena" / SEMANTICS.name
        package.mkdir(parents=True)
        for place in (package.parent, package):
            (place / "__init__.py").write_text(_PACKAGE, encoding="utf-8")
        for piece in pieces:
            shutil.copyfile(piece, package / piece.name)


def _put_headers(folder: Path, task: Task, environment: Environment) -> None:
    """task.h for the dtypes of the first seen case, the kernel library, and what else a compiler by hand needs."""
    texts = header_files(task, task.seen[0], environment.device)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
