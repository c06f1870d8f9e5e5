"""problems.csv of an imported corpus: what became of each problem, and why."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

FILE = "problems.csv"
IMPORTED, SKIPPED, NO_VERDICT = "imported", "skipped", "no verdict"


@dataclass(frozen=True)
class ProblemRow:
    """One problem: `task` is its id, `reason` and `detail` say why it is skipped, `key` what it was made from."""

    problem: str
    task: str
    outcome: str
    reason: str
    detail: str
    seconds: str
    key: str


def read(folder: Path) -> dict[str, ProblemRow]:
    """Return the rows of an earlier import by task id; none where there was none."""
    path = folder / FILE
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        names = [field.name for field in fields(ProblemRow)]
        rows = [ProblemRow(**{name: row.get(name) or "" for name in names}) for row in csv.DictReader(file)]
    return {row.task: row for row in rows}


def write(folder: Path, rows: Iterable[ProblemRow]) -> None:
    """Write all rows; the file is whole at every moment."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{FILE}.new"
    with new.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(ProblemRow)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    new.replace(folder / FILE)


@cache
def _code() -> bytes:
    """A hash of the code that decides what becomes of a problem."""
    from arena.checks.tasks.run import MUTANTS
    from arena.package import closure_hash

    formats = (f"arena.integrations.importers.{path.stem}" for path in Path(__file__).parent.glob("[a-z]*.py"))
    return closure_hash(formats, without=MUTANTS).encode()


def key_of(paths: Iterable[Path]) -> str:
    """Return a hash of a problem's files and of the code that imports and checks it."""
    digest = hashlib.sha256(_code())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
