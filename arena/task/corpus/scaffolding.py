"""A new task folder that loads and passes its schema, with TODO wherever its author has to say something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.errors import UsageError
from arena.task.corpus.task_folder import DEFINITION, HELDOUT, SHARED, TASKS
from arena.task.definition import TaskType
from arena.task.rules import LEAST_HELDOUT, LEAST_HELDOUT_KINDS, LEAST_KINDS, LONGEST_NAME

TODO = "TODO"
_TEMPLATES = Path(__file__).parent / "scaffold"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CASES = ("seen.yaml", HELDOUT)


@dataclass(frozen=True)
class Scaffold:
    """What was written: the folder, and every line of it that wants an answer."""

    folder: Path
    todo: tuple[str, ...]


def scaffold(task_type: str, suite: str, name: str, root: Path = TASKS) -> Scaffold:
    """Write a new task; one given as PyTorch shares the operator of a task of that name with a kernel.

    Raises `UsageError` for a name that cannot be one, or a task that is there already.
    """
    if task_type not in TaskType.__members__.values():
        raise UsageError(f"unknown task type {task_type!r}; expected one of: {', '.join(TaskType)}")
    for word in (suite, name):
        if not _NAME.fullmatch(word):
            raise UsageError(f"{word!r} is no name: lower-case letters, digits and underscores, as in C")
        if len(word) > LONGEST_NAME:
            raise UsageError(f"{word!r} has {len(word)} characters; a name may have {LONGEST_NAME}")
    folder = root / task_type / suite / name
    if folder.exists():
        raise UsageError(f"{folder} is there already")
    kind = TaskType(task_type)
    kernel_type = TaskType.TRITON2TRITON if kind.triton else TaskType.HIP2HIP
    kernel_task = f"{kernel_type}/{suite}/{name}"
    texts = _rendered(kind, name)
    if kind.from_pytorch and (root / kernel_task / DEFINITION).is_file():
        texts = {DEFINITION: f"{SHARED}: {kernel_task}\n", **{file: texts[file] for file in _CASES}}
    folder.mkdir(parents=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    return Scaffold(folder, unfinished(folder))


def unfinished(folder: Path) -> tuple[str, ...]:
    """`file:line: text` for every line of a task folder that still says TODO."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.suffix in (".yaml", ".py", ".hip"):
            lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
            found += [f"{path.name}:{number}: {line.strip()}" for number, line in lines if TODO in line]
    return tuple(found)


def places(lines: Sequence[str]) -> str:
    """Return where lines of `unfinished` are: `seen.yaml:1; task.yaml:3, 7`."""
    files: dict[str, list[str]] = {}
    for line in lines:
        name, number, _ = line.split(":", 2)
        files.setdefault(name, []).append(number)
    return "; ".join(f"{name}:{', '.join(numbers)}" for name, numbers in files.items())


def _rendered(kind: TaskType, name: str) -> dict[str, str]:
    """The files of a task of its own, by name."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    engine = Environment(loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True)
    files = [DEFINITION, *_CASES, "reference.py"]
    if not kind.from_pytorch:
        files.append(kind.kernel_file)
    values = {"name": name, "kinds": LEAST_KINDS, "strict_cases": LEAST_HELDOUT, "strict_kinds": LEAST_HELDOUT_KINDS}
    return {file: engine.get_template(f"{file}.j2").render(values) for file in files}
