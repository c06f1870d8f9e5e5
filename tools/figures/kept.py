"""Kept records: what each is of, and the runs and texts that are read from them. Used by `tools/claims.py`.

`reports/records.yaml` says of every record that a table or a figure is made from when and where it was measured.
"""

from __future__ import annotations

import csv
import gzip
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from arena.runs.records import RunRecords, read_run

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "reports"
FULL, QUICKSTART, CHECKS = (
    f"reports/{name}.tar.xz" for name in ("full-h200/records", "quickstart-cpu/records", "full-h200/checks")
)
VERSIONS = REPORTS / "full-h200" / "versions.json"
"""of each task that a kept run or check is about, by content hash"""
CORRECTNESS = tuple(f"reports/{name}/correctness.tar.xz" for name in ("full-h200", "frontier-h200"))
TIMES = ("reports/times-h200.jsonl.gz", "reports/engine-times-h200.jsonl.gz")
MADE = "Written by `python tools/claims.py`, and compared with the record by a test."
_OPEN: list[tempfile.TemporaryDirectory[str]] = []
"""folders of unpacked archives, which go when the process ends"""


@dataclass(frozen=True)
class Record:
    """What `reports/records.yaml` says of one record; `path` is that of the file."""

    path: str
    dates: Sequence[str]
    commits: Sequence[str]
    device: str
    made_by: str

    def described(self) -> str:
        """Return the record with its dates and commits, for the head of a table."""
        at = ", ".join(f"`{commit}`" for commit in self.commits)
        days = self.dates[0] if len(self.dates) == 1 else f"{self.dates[0]} to {self.dates[-1]}"
        return f"`{self.path}` ({self.made_by}; {days}; {at or 'commit not recorded'})"


@cache
def records() -> dict[str, Record]:
    """Return all records by their path."""
    known = yaml.safe_load((REPORTS / "records.yaml").read_text(encoding="utf-8"))
    return {
        path: Record(path, [str(day) for day in one["dates"]], one["commits"], one["device"], one["made_by"])
        for path, one in known.items()
    }


def headed(text: str, sources: Sequence[str]) -> str:
    """Return a page in Markdown with a paragraph behind its title: the records that it is made from."""
    title, _, rest = text.partition("\n")
    kept = "\n".join(f"- {records()[path].described()}" for path in sources)
    return f"{title}\n\n{MADE} Made from:\n\n{kept}\n{rest}"


@cache
def unpacked(archive: str) -> Path:
    """Return a temporary folder with the content of an archive."""
    _OPEN.append(tempfile.TemporaryDirectory())
    folder = Path(_OPEN[-1].name)
    with tarfile.open(ROOT / archive) as packed:
        packed.extractall(folder, filter="data")
    return folder


@cache
def run(archive: str) -> RunRecords:
    """Return the only run of an archive."""
    (folder,) = unpacked(archive).iterdir()
    return read_run(folder)


def rows(path: str) -> list[dict[str, str]]:
    """Return the rows of a kept table."""
    return list(csv.DictReader(lines(path)))


def lines(path: str) -> list[str]:
    """Return the lines of a kept text, compressed or not."""
    file = ROOT / path
    text = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text(encoding="utf-8")
    return text.splitlines()
