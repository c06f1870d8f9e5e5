"""Writes reports/tables/cheats.md from the corpus of cheats, and runs the corpus on the CPU platform for it.

    python tools/cheat_table.py           write the page from the corpus and the kept results
    python tools/cheat_table.py --run     run every candidate first; tests/cheats/results-cpu.json keeps what was seen
    python tools/cheat_table.py --run --only later      run those whose name holds `later`, and keep the other results
    python tools/cheat_table.py --run --missing         run those that have not run since they were written
    python tools/cheat_table.py --run --gpu --results FILE      keep what was seen in FILE alone, and write no page

What `--missing` keeps may have been seen by an older judge: leave it out to have everything run by this one.
What a platform has not run says `not run`. For a GPU, keep `tests/cheats/results-gpu.json`, written with `--run --gpu`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from figures.kept import headed  # noqa: E402

from tests.cheat_fixtures import CheatFixture, Entry, cheat_fixtures, digest, table  # noqa: E402

PAGE = ROOT / "reports" / "tables" / "cheats.md"
RESULTS = {name: ROOT / "tests" / "cheats" / f"results-{name.lower()}.json" for name in ("CPU", "GPU")}
SOURCES = tuple(str(file.relative_to(ROOT)) for file in RESULTS.values())
_HEAD = """# Cheats

Ways to a better number without a better kernel, what stops each, and what was seen. Made by
`python tools/cheat_table.py` from the candidates under `tests/cheats/` and from `tests/cheats/table.yaml`; a test keeps
it in step with both. *Expected* is the status a candidate must get; `passed` means that it is right and that the trick
gains nothing. The columns CPU and GPU give the status in the last run that was kept: **not caught** where that is not
the expected one, `not run` where there is none, `–` where the trick means nothing there. Some candidates ask whether a
wall holds, and answer rightly only if it did not.
"""


def main() -> int:
    """Run if asked, write the page, print the totals; 1 if a run saw what was neither expected nor excused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--results", type=Path)
    asked = parser.parse_args()
    platform = "GPU" if asked.gpu else "CPU"
    if asked.results:
        RESULTS[platform] = asked.results
    if asked.run:
        _run(platform, asked.only, missing=asked.missing)
    if not asked.results:
        PAGE.write_text(headed(page(), SOURCES), encoding="utf-8")
    sys.stdout.write(totals(platform, _seen(platform)) + "\n")
    return int(any(_surprises(fixture, platform, _seen(platform)) for fixture in cheat_fixtures()))


def page() -> str:
    """The whole page, from the corpus and the kept results."""
    known = cheat_fixtures()
    seen = {platform: _seen(platform) for platform in RESULTS}
    parts = [_HEAD, *(totals(platform, seen[platform]) + "\n" for platform in RESULTS), "## Cheats\n"]
    columns = "| # | cheat, and what stops it | example | expected | CPU | GPU |\n| --- | --- | --- | --- | --- | --- |"
    rows = [row for entry in table() for row in _rows(entry, known, seen)]
    parts.append("\n".join([columns, *rows]) + "\n")
    parts.append(
        "## Failures that are no cheats\n\n" + _listed([e for e in known if not e.cheats and not e.honest], seen)
    )
    parts.append("## Honest candidates\n\nRight, unusual, and to be let through.\n\n" + _listed(_honest(), seen))
    parts.append("## What is not caught\n\n" + "\n".join(_open(known)) + "\n")
    return "\n".join(parts)


def totals(platform: str, seen: dict[str, list[str]]) -> str:
    """`CPU: 70 of 75 cheats caught or without effect; 24 of 24 honest candidates passed`."""
    cheats = [e for e in cheat_fixtures() if not e.honest and platform not in e.meaningless]
    honest = [e for e in _honest() if platform not in e.meaningless]
    if not any(_status(e, seen) for e in (*cheats, *honest)):
        return f"{platform}: not run."
    good = [sum(_status(e, seen) in e.expected[platform] for e in group) for group in (cheats, honest)]
    left = sum(not _status(e, seen) for e in (*cheats, *honest))
    return (
        f"{platform}: {good[0]} of {len(cheats)} candidates that cheat or fail got the status expected of them; "
        f"{good[1]} of {len(honest)} honest ones passed{f'; {left} of all these have not run yet' if left else ''}."
    )


def _rows(entry: Entry, known: list[CheatFixture], seen: dict[str, dict[str, list[str]]]) -> list[str]:
    examples = [fixture for fixture in known if entry.number in fixture.cheats]
    rows = [(f"`{_name(e)}`", _expected(e), *(_shown(e, p, seen[p]) for p in RESULTS)) for e in examples]
    rows += [(f"test `{test}`", "", "", "") for test in entry.tests]
    what = f"{entry.cheat}: {entry.defence}"
    heads = [(str(entry.number), what), *[("", "")] * (len(rows) - 1)]
    return [f"| {' | '.join((*head, *row))} |" for head, row in zip(heads, rows or [("", "", "", "")], strict=True)]


def _listed(chosen: list[CheatFixture], seen: dict[str, dict[str, list[str]]]) -> str:
    rows = ["| candidate | how | expected | CPU | GPU |", "| --- | --- | --- | --- | --- |"]
    for e in chosen:
        cells = (f"`{_name(e)}`", e.how, _expected(e), *(_shown(e, p, seen[p]) for p in RESULTS))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _open(known: list[CheatFixture]) -> list[str]:
    found = [
        f"- `{_name(e)}` ({', '.join(e.uncaught)}): {next(iter(e.uncaught.values()))}." for e in known if e.uncaught
    ]
    return [*found, *(f"- {entry.number}, {entry.cheat}: {entry.limit}." for entry in table() if entry.limit)]


def _shown(fixture: CheatFixture, platform: str, seen: dict[str, list[str]]) -> str:
    if platform in fixture.meaningless:
        return "–"
    status = _status(fixture, seen)
    if not status:
        return "not run"
    return status if status in fixture.expected[platform] else f"**not caught**: {status}"


def _expected(fixture: CheatFixture) -> str:
    on_cpu, on_gpu = (" or ".join(fixture.expected[platform]) for platform in ("CPU", "GPU"))
    return on_gpu if on_cpu == on_gpu else f"{on_gpu}; emulated: {on_cpu}"


def _name(fixture: CheatFixture) -> str:
    return f"{fixture.path.parent.name}/{fixture.path.name}"


def _honest() -> list[CheatFixture]:
    return [fixture for fixture in cheat_fixtures() if fixture.honest]


def _status(fixture: CheatFixture, seen: dict[str, list[str]]) -> str:
    """What was seen of exactly this file; nothing where it has changed since."""
    status, of = seen.get(_name(fixture), ["", ""])
    return status if of == digest(fixture.path) else ""


def _surprises(fixture: CheatFixture, platform: str, seen: dict[str, list[str]]) -> bool:
    if platform in fixture.meaningless or not _status(fixture, seen):
        return False
    return (_status(fixture, seen) in fixture.expected[platform]) == (platform in fixture.uncaught)


def _seen(platform: str) -> dict[str, list[str]]:
    file = RESULTS[platform]
    found: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def _run(platform: str, only: str, *, missing: bool) -> None:
    """What was seen is kept after each: a run that is cut short goes on with `--missing`."""
    if platform == "CPU":
        os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    from arena.judge.process.client import JudgeClient
    from tests.judge.test_cheats import CPU_OPTIONS, GPU_OPTIONS, evaluate, outcome

    options = CPU_OPTIONS if platform == "CPU" else GPU_OPTIONS
    seen = _seen(platform) if only or missing else {}
    chosen = [e for e in cheat_fixtures() if only in _name(e) and platform not in e.meaningless]
    due = [e for e in chosen if not (missing and _status(e, seen))]
    with JudgeClient("cpu" if platform == "CPU" else "auto") as judge, tempfile.TemporaryDirectory() as folder:
        for fixture in due:
            evaluation = evaluate(judge, fixture, Path(folder), options)
            status = outcome(evaluation)
            seen[_name(fixture)] = [status, digest(fixture.path)]
            gained = ", ".join(f"{case.speedup.value:.3f}" for case in evaluation.cases if case.speedup is not None)
            why = evaluation.verdicts[-1].detail or f"speedups {gained}"
            surprise = f"  <- not as expected: {why}" if _surprises(fixture, platform, seen) else ""
            sys.stderr.write(f"{_name(fixture)}: {status}{surprise}\n")
            RESULTS[platform].write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
