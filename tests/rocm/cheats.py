"""Evaluate the HIP files of tests/cheats on the simulated device: `python -m tests.rocm.cheats OUT [NAME…]`.

Started inside the machine, see the Makefile's `rocm-sim`. Checked is correctness alone, on the smallest cases: what a
file does to timings stays unseen. OUT is a JSON file; a table lies beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from arena.errors import ArenaError
from arena.judge.process.client import JudgeClient
from arena.results.effort import Effort
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS
from arena.task.options import Options
from tests.candidates import TASK_OF, assembled
from tests.cheat_fixtures import CheatFixture, cheat_fixtures
from tests.rocm.evaluate_tasks import NOTE

_OPTIONS = {"effort": Effort.CORRECTNESS, "seeds": 3, "max_work": 5e4}
_CALL_S, _ENDS_S = 200.0, 20.0
_DETAIL = 200


class Row(TypedDict):
    """One file: the statuses that a GPU must give, and what the simulated one gave."""

    name: str
    expected: list[str]
    seen: str
    detail: str


def fixtures(names: list[str]) -> list[CheatFixture]:
    """Return the files in HIP that mean something on a GPU, or those among them that are named."""
    hip = [one for one in cheat_fixtures() if one.path.suffix == ".hip" and "GPU" not in one.meaningless]
    return [one for one in hip if not names or one.path.stem in names]


def evaluated(judge: JudgeClient, fixture: CheatFixture, folder: Path) -> Row:
    """Return the row of one file."""
    expected = fixture.expected["GPU"]
    limit = _ENDS_S if Status.TIMEOUT in expected else _CALL_S
    options = Options(**_OPTIONS, heldout=fixture.heldout, call_timeout_s=limit)  # type: ignore[arg-type]
    row = Row(name=fixture.path.stem, expected=[str(one) for one in expected], seen="harness failed", detail="")
    try:
        found = judge.evaluate(TASKS / TASK_OF[fixture.path.parent.name], assembled(fixture.path, folder), options)
        row["seen"], row["detail"] = str(found.verdicts[-1].status), found.verdicts[-1].detail[:_DETAIL]
    except ArenaError as problem:
        row["detail"] = str(problem)[:_DETAIL]
    return row


def table(rows: list[Row], commit: str) -> str:
    """Return the table; files that were not seen come with what the judge said."""
    good = sum(row["seen"] in row["expected"] for row in rows)
    lines = [f"{NOTE}\n", f"{good} of {len(rows)} files got a status that is expected of them (commit {commit}).\n"]
    lines += ["| file | expected on a GPU | simulated |", "|---|---|---|"]
    lines += [f"| {row['name']} | {' or '.join(row['expected'])} | {row['seen']} |" for row in rows]
    other = [row for row in rows if row["seen"] not in row["expected"]]
    lines += ["", *(f"- {row['name']}: {row['seen']} {' '.join(row['detail'].split())}" for row in other)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Return 1 where a file gets another status than the expected one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a JSON file; the table lies beside it")
    parser.add_argument("names", nargs="*", help="files without their suffix; without any, all")
    parser.add_argument("--commit", default="unknown", help="what the checkout is at")
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with JudgeClient("rocm-sim") as judge, tempfile.TemporaryDirectory() as folder:
        for fixture in fixtures(asked.names):
            rows.append(evaluated(judge, fixture, Path(folder)))
            last = rows[-1]
            wanted = " or ".join(last["expected"])
            sys.stdout.write(f"simulated, no times: {last['name']}: {last['seen']}, expected {wanted}\n")
            sys.stdout.flush()
            held = {"note": NOTE, "commit": asked.commit, "rows": rows}
            asked.out.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
            asked.out.with_suffix(".md").write_text(table(rows, asked.commit), encoding="utf-8")
    return int(any(row["seen"] not in row["expected"] for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
