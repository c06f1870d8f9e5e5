"""Write every figure of README and docs, and every generated page under reports/, from the records that are kept.

    python tools/claims.py             write all of them
    python tools/claims.py --check     write nothing; exit code 1 where a text differs from its record
    python tools/claims.py --list      print where each figure stands, and what it is made from
    python tools/claims.py --core      also choose the core of the corpus anew, for a release
    python tools/claims.py --fills     also draw docs/figures/fills.svg, which depends on the version of PyTorch

A figure stands between `<!-- figure: NAME -->` and `<!-- end -->`, inside a line or as lines of its own. FIGURES says
what makes it. `reports/records.yaml` says when and at which commit each record was measured.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from figures import (
    core,
    corpus,
    drawings,
    full_run,
    kept,
    messages,
    options,
    published,
    quickstart,
    runs_on,
    speed_of_light,
    tables,
)

ROOT = kept.ROOT
LIST = "reports/tables/claims.md"
DRAWINGS = "docs/figures"
REDO = "run `python tools/claims.py`"
_DECIMAL = re.compile(rb"(\d+\.\d{9,}(?:e-?\d+)?)")
_BEGIN, _END = "<!-- figure: {} -->", "<!-- end -->"
_MARKED = re.compile(r"<!-- figure: ([\w-]+) -->(.*?)<!-- end -->", re.DOTALL)
_PRODUCTION = "reports/production-h200.csv"


class Figure(NamedTuple):
    """What makes a figure, and from which records or folders. A block stands in lines of its own."""

    text: Callable[[], str]
    sources: Sequence[str]
    block: bool = False


FIGURES: Mapping[str, Figure] = {
    "adapters": Figure(corpus.adapters, ["integrations/yardsticks"]),
    "blind-faults": Figure(corpus.blind_faults, [corpus.BLIND_FAULTS]),
    "clock": Figure(corpus.clock, corpus.TIMINGS),
    "correctness": Figure(full_run.correctness, kept.CORRECTNESS),
    "cost": Figure(full_run.cost, [kept.FULL]),
    "drift": Figure(full_run.drift, [kept.FULL]),
    "experts": Figure(full_run.by_type, [kept.FULL], block=True),
    "full-counts": Figure(full_run.full_counts, [kept.FULL]),
    "full-result": Figure(full_run.full_result, [kept.FULL]),
    "kernelbench": Figure(corpus.kernelbench, [corpus.KERNELBENCH], block=True),
    "known-baseline": Figure(corpus.known_baseline, corpus.KNOWN_BASELINE),
    "machine-code": Figure(corpus.machine_code, corpus.MACHINE_CODE, block=True),
    "mutants": Figure(corpus.mutants, [kept.CHECKS]),
    "options": Figure(options.table, [options.SOURCE], block=True),
    "production": Figure(corpus.engines, [_PRODUCTION]),
    "published": Figure(published.sentence, [published.RECORDS]),
    "quickstart-answers": Figure(quickstart.answers, [kept.QUICKSTART], block=True),
    "quickstart-evaluation": Figure(quickstart.evaluation, [kept.QUICKSTART], block=True),
    "quickstart-table": Figure(quickstart.table, [kept.QUICKSTART], block=True),
    "quickstart-trials": Figure(quickstart.trials, [kept.QUICKSTART], block=True),
    "runs-on": Figure(lambda: runs_on.table(runs_on.REPORTS), ["reports/runs-on"], block=True),
    "self-timing": Figure(full_run.self_timing, [kept.FULL]),
    "self-timing-table": Figure(full_run.self_timing_table, [kept.FULL], block=True),
    "split": Figure(corpus.split, ["tasks"]),
    "task-types": Figure(corpus.task_types, ["tasks"], block=True),
}


def main() -> int:
    """Write, check or list; return 1 where a text differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a text differs")
    parser.add_argument("--list", action="store_true", help="print the list of figures")
    parser.add_argument("--core", action="store_true", help=f"also choose {core.PATH} anew, for a release")
    parser.add_argument("--fills", action="store_true", help="also draw docs/figures/fills.svg")
    asked = parser.parse_args()
    if asked.list:
        sys.stdout.write(listed())
        return 0
    if asked.core:
        (ROOT / core.PATH).write_bytes(core.core_file())
    if asked.fills:
        (ROOT / DRAWINGS / "fills.svg").write_text(drawings.fills().svg(), encoding="utf-8")
    stale = []
    for path, made in made_files():
        file = ROOT / path
        if not file.is_file() or not same(file.read_bytes(), made):
            stale.append(path)
            if not asked.check:
                file.write_bytes(made)
    verb = "differs from its record" if asked.check else "written"
    sys.stdout.write("".join(f"{path}: {verb}\n" for path in stale))
    return int(asked.check and bool(stale))


def same(kept_text: bytes, made: bytes) -> bool:
    """Return whether texts differ in nothing but the last digits of numbers, which depend on the processor."""
    if kept_text == made:
        return True
    olds, news = (_DECIMAL.split(text) for text in (kept_text, made))
    if olds[::2] != news[::2]:
        return False
    return all(math.isclose(float(a), float(b), rel_tol=1e-12) for a, b in zip(olds[1::2], news[1::2], strict=True))


def made_files() -> Iterator[tuple[str, bytes]]:
    """Yield each file that has generated text, as it should be: its path, its bytes.

    Files that others are made from come first.
    """
    yield str(kept.VERSIONS.relative_to(ROOT)), tables.versions()
    yield str(tables.PUBLISHED_VERSIONS.relative_to(ROOT)), tables.published_versions()
    for name, content in tables.report():
        yield f"{tables.FULL_REPORT.relative_to(ROOT)}/{name}", content
    for path, table in tables.TABLES.items():
        yield path, table.page().encode()
    yield published.ROWS, published.table()
    yield speed_of_light.DRAWING, speed_of_light.drawing(tables.speed_of_light_groups()).svg().encode()
    for name, draw in drawings.FIGURES.items():
        yield f"{DRAWINGS}/{name}.svg", draw().svg().encode()
    yield messages.PAGE, messages.page().encode()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if _MARKED.search(text):
            yield str(page.relative_to(ROOT)), filled(text).encode()
    yield LIST, listed().encode()


def pages() -> list[Path]:
    """Return the pages that may have figures."""
    return [ROOT / "README.md", ROOT / "reports" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def filled(page: str) -> str:
    """Return a page with each figure as its record has it.

    Raises:
        ValueError: for an unknown figure, a marker without its end, or one where Markdown would not hide it.
    """
    rest = _MARKED.sub("", page)
    if "<!-- figure:" in rest or _END in rest:
        raise ValueError(f"a figure is not closed by {_END}, or not opened")
    return _MARKED.sub(_replaced, page)


def _replaced(found: re.Match[str]) -> str:
    name = found[1]
    if name not in FIGURES:
        raise ValueError(f"no figure {name!r}; expected one of {', '.join(FIGURES)}")
    line = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
    if FIGURES[name].block != (not line.strip(" -*>")):
        raise ValueError(f"{name}: a block begins a line, and no other figure does")
    text = _text(name)
    return f"{_BEGIN.format(name)}\n\n{text}\n\n{_END}" if FIGURES[name].block else f"{_BEGIN.format(name)}{text}{_END}"


@cache
def _text(name: str) -> str:
    return FIGURES[name].text()


def used() -> dict[str, list[str]]:
    """Return the pages of each figure that stands somewhere."""
    found: dict[str, list[str]] = {}
    for page in pages():
        for name, _ in _MARKED.findall(page.read_text(encoding="utf-8")):
            found.setdefault(name, []).append(str(page.relative_to(ROOT)))
    return found


def listed() -> str:
    """Return the list of all figures and generated pages as Markdown."""
    lines = [
        "# Figures and what they are made from",
        "",
        f"{kept.MADE} Every figure of README and docs that comes from a record stands here, and every generated page.",
        "",
        "| figure | says | stands in | made from |",
        "| --- | --- | --- | --- |",
    ]
    for name, where in sorted(used().items()):
        shown = "a block" if FIGURES[name].block else _text(name)
        on = ", ".join(f"`{page}`" for page in where)
        lines.append(f"| `{name}` | {shown} | {on} | {_cited(FIGURES[name].sources)} |")
    lines += ["", "| page | made from |", "| --- | --- |"]
    lines.append(f"| {_linked('reports/full-h200/summary.md')} and the files beside it | {_cited([kept.FULL])} |")
    lines.append(f"| `{DRAWINGS}/report.svg` | {_cited([kept.QUICKSTART])} |")
    beside = tables.TABLES["reports/tables/speed-of-light.md"].sources
    lines.append(f"| {_linked(speed_of_light.DRAWING)} | {_cited(beside)} |")
    lines.append(f"| {_linked(messages.PAGE)} | {_cited([messages.SOURCE])} |")
    lines += [f"| {_linked(path)} | {_cited(table.sources)} |" for path, table in tables.TABLES.items()]
    return "\n".join(lines) + "\n"


def _linked(path: str) -> str:
    return f"[{path}](../../{path})"


def _cited(sources: Sequence[str]) -> str:
    known = kept.records()
    return "; ".join(known[path].described() if path in known else f"`{path}` as it is" for path in sources)


if __name__ == "__main__":
    sys.exit(main())
