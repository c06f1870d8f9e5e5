"""Kernels that others have published, with what was claimed of them: read for `arena regrade`, and never executed here.

Each format is a function from a folder to published kernels. A kernel names its task by what the task's own `source`
says, so that no list of tasks is kept twice.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from arena.errors import UsageError
from arena.integrations.checkout import commit_of
from arena.task.definition import Task

_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_SAMPLE = re.compile(r"(^|/)level_(?P<level>\d+)_problem_(?P<problem>\d+)_sample_\d+_kernel\.py$")
_BY_LEVEL = re.compile(r"(^|/)level(?P<level>\d)/(?P<problem>\d+)_[^/]*$")


@dataclass(frozen=True)
class Claim:
    """The publisher's claim about a kernel; None where nothing is said."""

    correct: bool | None = None
    speedup: float | None = None
    """over the publisher's own baseline"""
    peak_fraction: float | None = None
    """of the publisher's own roofline"""
    verdict: str = ""
    """of the publisher's own audit"""


@dataclass(frozen=True)
class PublishedKernel:
    """One published file: who wrote it, for which problem, and where it is from. Its text is not kept."""

    agent: str
    problem: str
    """the publisher's name of the problem"""
    path: str
    """inside the source"""
    sha256: str
    claim: Claim
    commit: str = ""
    task: str = ""
    """the task that has this problem; empty where there is none"""
    attempt: int = 1
    lack: str = ""
    """why it is not judged; empty where it is"""
    cases: tuple[str, ...] = ()
    """the task's cases that have published sizes"""

    @property
    def row(self) -> str:
        """The name by which `--row` finds it."""
        return f"{self.agent}/{self.problem}/{self.attempt}"


@dataclass(frozen=True)
class Found:
    """A kernel and its text, before it has a task."""

    kernel: PublishedKernel
    text: bytes


def kernelbench_com(source: Path) -> Iterator[Found]:
    """Yield the solutions of a checkout of Infatoshi/kernelbench.com: `public/runs/<gpu>/*_solution.py.txt`."""
    for file in sorted(source.glob("public/runs/*/*_solution.py.txt")):
        detail = source / "public/data/rundetail" / file.parent.name / file.name.replace("_solution.py.txt", ".json")
        facts = _json(detail)
        problem = str(facts.get("problem") or "_".join(file.stem.split("_")[-4:-1]))
        agent = "-".join(filter(None, (str(facts.get("harness") or ""), str(facts.get("model") or "unknown"))))
        claim = Claim(
            _typed(facts.get("correct"), bool),
            peak_fraction=_typed(facts.get("peak_fraction"), float),
            verdict=str(facts.get("annotation_verdict") or ""),
        )
        yield _found(source, file, f"{agent}.{file.parent.name}", problem, claim)


def kernelbench(source: Path) -> Iterator[Found]:
    """Yield the kernels of runs of KernelBench, `level_L_problem_P_sample_S_kernel.py`, and of `levelL/P_Name[.py]`."""
    for file in sorted(path for path in source.rglob("*") if path.suffix in ("", ".py") and path.is_file()):
        place = file.relative_to(source).as_posix()
        found = _SAMPLE.search(place) or _BY_LEVEL.search(place)
        if found is not None:
            agent = place[: found.start()].strip("/") or source.resolve().name
            yield _found(source, file, agent, f"level{found['level']}/{found['problem']}", Claim())


def cuda_l1(source: Path) -> Iterator[Found]:
    """Yield what a checkout of deepreinforce-ai/CUDA-L1 has: `optimized_cuda_code/<gpu>.json`, a problem a line.

    Lines without a solution are left out. A claim is the speedup over PyTorch; a path has the number of its line.
    """
    for file in sorted(source.glob("optimized_cuda_code/*.json")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            facts = _object(line)
            text = facts.get("custom_code")
            if isinstance(text, str) and text:
                place = f"{file.relative_to(source).as_posix()}:{number}"
                problem = f"level{facts.get('level_id')}/{facts.get('task_id')}"
                speedup = _typed(facts.get("score_default"), float)
                claim = Claim(correct=True if speedup is not None else None, speedup=speedup)
                yield _found_text(text.encode(), place, f"cuda-l1.{file.stem}", problem, claim)


def folder(source: Path) -> Iterator[Found]:
    """Yield `<agent>/<task id>/[<attempt>/]kernel.py` or `kernel.hip`; `claims.json` beside has claims by path."""
    claims = _json(source / "claims.json")
    for file in sorted((*source.rglob("kernel.py"), *source.rglob("kernel.hip"))):
        parts = file.relative_to(source).parts
        if len(parts) < len(("agent", "type", "suite", "name", "file")):
            continue
        entry = claims.get(file.relative_to(source).as_posix())
        claim = Claim(**{key: entry[key] for key in Claim.__annotations__ if key in entry}) if entry else Claim()
        yield _found(source, file, parts[0], "/".join(parts[1:4]), claim)


FORMATS: Mapping[str, Callable[[Path], Iterator[Found]]] = {
    "kernelbench.com": kernelbench_com,
    "kernelbench": kernelbench,
    "cuda-l1": cuda_l1,
    "folder": folder,
}
TIMED_ARE_PUBLISHED = ("kernelbench.com", "kernelbench", "cuda-l1")
"""formats whose tasks have the published sizes as timed seen cases; the small ones beside them are ours"""


def published(source: Path, form: str, tasks: Mapping[str, Task], rows: Sequence[str] = ()) -> list[Found]:
    """Read a source, and give each kernel the task that has its problem.

    Args:
        source: a folder, most often a checkout.
        form: a name of `FORMATS`.
        tasks: those that may be judged, by id.
        rows: globs over `agent/problem/attempt`; none: all.

    Raises:
        UsageError: the format is unknown, or the source holds no kernel in it.
    """
    if form not in FORMATS:
        raise UsageError(f"--as {form}: expected one of: {', '.join(FORMATS)}")
    commit = commit_of(source)
    read = (Found(replace(one.kernel, commit=commit), one.text) for one in FORMATS[form](source))
    found = list(_numbered(_placed(one, tasks, timed=form in TIMED_ARE_PUBLISHED) for one in read))
    if not found:
        raise UsageError(f"{source} holds no kernel in the format {form}: see `arena regrade --help` for its layout")
    chosen = [one for one in found if not rows or any(fnmatch(one.kernel.row, glob) for glob in rows)]
    if not chosen:
        raise UsageError(f"--row {rows[0]}: no row fits; the first is {found[0].kernel.row}")
    return chosen


def _found(source: Path, file: Path, agent: str, problem: str, claim: Claim) -> Found:
    return _found_text(file.read_bytes(), file.relative_to(source).as_posix(), agent, problem, claim)


def _found_text(text: bytes, path: str, agent: str, problem: str, claim: Claim) -> Found:
    kernel = PublishedKernel(
        agent=_NAME.sub("-", agent).strip("-.")[:60] or "unknown",
        problem=problem,
        path=path,
        sha256=hashlib.sha256(text).hexdigest(),
        claim=claim,
    )
    return Found(kernel, text)


def _placed(found: Found, tasks: Mapping[str, Task], *, timed: bool) -> Found:
    """Give a kernel its task: the one of this id, or the one whose `source` names the problem's file.

    `timed`: only timed seen cases have published sizes.
    """
    problem = found.kernel.problem
    level, _, number = problem.partition("/")
    mine = [task for task in tasks.values() if task.id == problem or f"/{problem}/" in task.source]
    mine = mine or [task for task in tasks.values() if number and f" {level}/{number}_" in f" {task.source}"]
    if len(mine) != 1:
        lack = "several tasks have this problem" if mine else "no task has this problem"
        return Found(replace(found.kernel, lack=lack), found.text)
    cases = tuple(case.id for case in mine[0].seen if not case.regime and (case.timed or not timed))
    return Found(replace(found.kernel, task=mine[0].id, cases=cases), found.text)


def _numbered(found: Iterable[Found]) -> Iterator[Found]:
    """Number the kernels that an agent has for one problem."""
    counts: dict[tuple[str, str], int] = {}
    for one in found:
        key = (one.kernel.agent, one.kernel.problem)
        counts[key] = counts.get(key, 0) + 1
        yield Found(replace(one.kernel, attempt=counts[key]), one.text)


def _json(file: Path) -> dict[str, Any]:
    try:
        return _object(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _object(text: str) -> dict[str, Any]:
    """Return an object of JSON; an empty one for anything else."""
    try:
        read = json.loads(text)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _typed(value: object, kind: type) -> Any:
    """Return a value of this type; None for any other."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if isinstance(value, kind) else None
