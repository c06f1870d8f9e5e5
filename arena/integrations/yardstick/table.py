"""The CSV file of `arena yardstick`: a row for every timed case, and one for their geometric mean."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from arena.errors import FileError
from arena.runs.records import write_bytes

COLUMNS = (
    *("task", "engine", "version", "files", "device", "versions", "effort", "digest", "case", "shape", "status"),
    *("speedup", "speedup_low", "speedup_high", "baseline_ms", "candidate_ms", "roofline_fraction", "noisy", "detail"),
)
MEAN = "geometric mean"
"""in the column `case`: the row over all cases that passed"""
Row = Mapping[str, str]


def read_table(path: Path) -> list[Row]:
    """Read the rows of an earlier run; none where there is no file. Raises `FileError` for other columns."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise FileError(path, f"expected the columns {', '.join(COLUMNS)}; give another --out", line=1)
        return list(reader)


def has_rows(rows: Iterable[Row], **cells: str) -> bool:
    """Return whether some row has these cells."""
    return any(all(row[name] == value for name, value in cells.items()) for row in rows)


def replace_rows(path: Path, old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Write the table with new rows in place of those of the same task, engine and device, and return it.

    Raises `StorageError` where the file cannot be written, which then stays as it was.
    """
    replaced = {(row["task"], row["engine"], row["device"]) for row in new}
    rows = [row for row in old if (row["task"], row["engine"], row["device"]) not in replaced]
    rows = sorted([*rows, *new], key=lambda row: (row["task"], row["engine"], row["device"]))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
    return rows
