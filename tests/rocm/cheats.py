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

OTHER = {
    "another_stream": ("passed", "packets of all queues are taken in turn, so no stream lags behind"),
    "assumes_32_lanes": ("wrong_result", "waves have 64 lanes; what is expected is for 32"),
    "by_call_count": ("passed", "it waits for the calls of a timing"),
    "copies_within_the_device": ("passed", "memory of the device is the process's own"),
    "digraph_include": ("compile_error", "no library of ready-made kernels is installed"),
    "embeds_a_file": ("passed", "not caught: clang's assembler does not tell what it reads"),
    "include_by_macro": ("compile_error", "no library of ready-made kernels is installed"),
    "include_next": ("compile_error", "no library of ready-made kernels is installed"),
    "probes_reach": ("passed", "memory of the device is the process's own"),
    "scratch_overrun": ("passed", "as on a GPU, regions of scratch end at 256 bytes, and nothing looks behind them"),
}
"""statuses that differ from those of a GPU, each with its reason"""
LEFT_OUT = {"scans_memory": "one lane reads two thousand rows, which takes minutes to simulate"}
"""files that are not run, each with its reason"""
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
    """Return the files in HIP that mean something on a GPU and are not left out, or those that are named."""
    hip = [one for one in cheat_fixtures() if one.path.suffix == ".hip" and "GPU" not in one.meaningless]
    return [one for one in hip if one.path.stem not in LEFT_OUT and (not names or one.path.stem in names)]


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
    other = [row for row in rows if row["seen"] not in row["expected"]]
    good = len(rows) - len(other)
    lines = [f"{NOTE}\n", f"{good} of {len(rows)} files got a status that is expected of them (commit {commit}).\n"]
    lines += ["| file | expected on a GPU | simulated |", "|---|---|---|"]
    lines += [f"| {row['name']} | {' or '.join(row['expected'])} | {row['seen']} |" for row in rows]
    lines += ["", *(f"- {row['name']}: {row['seen']}, {_reason(row)}" for row in other)]
    lines += [f"- {name}: not run, {why}" for name, why in LEFT_OUT.items()]
    return "\n".join(lines) + "\n"


def _known(row: Row) -> str:
    status, reason = OTHER.get(row["name"], ("", ""))
    return reason if status == row["seen"] else ""


def _reason(row: Row) -> str:
    """Return the reason that is known, or what the judge said."""
    return _known(row) or " ".join(row["detail"].split())


def main() -> int:
    """Return 1 where a file gets another status than the expected one, without a reason."""
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
    return int(any(row["seen"] not in row["expected"] and not _known(row) for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
