"""Every figure of README and docs, and every generated page, is what its record says today."""

from __future__ import annotations

import re
from collections import Counter
from types import ModuleType

import pytest

from arena.reports.reproduction import CLOCK_ERROR
from arena.results.reward import REWARDS
from arena.results.verdict import Status
from arena.task.corpus.corpora import load_corpus
from tests.tools import ROOT, load

REDO = "run `python tools/claims.py`"
LIMITS = {
    "docs/develop/faults.md": {"0.1 s"},
    "docs/develop/isolation.md": {"0.1 ms", "0.1 s"},
    "docs/develop/measurement.md": {"2.5 ms"},
    "docs/evaluate/reading-a-report.md": {"0.99×", "1.01×", f"{100 * CLOCK_ERROR:g} %"},
}
"""numbers with a point that are limits of the code, or examples"""
_FIGURE = re.compile(r"<!-- figure: [\w-]+ -->.*?<!-- end -->", re.DOTALL)
_CODE = re.compile(r"^```.*?^```|^(?: {4}|\t)[^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_MEASURED = re.compile(
    r"\d\.\d+ ?(?:×|%|s\b|µs|ms)|\d+ evaluations an hour|\b\d[\d,]* of \d[\d,]{2,}"
    r"|\b[1-9][\d,]{2,} (?:tasks|cases|experts|kernels|mutants|trials)"
)
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load("claims")


def test_every_figure_is_that_of_its_record(tool: ModuleType) -> None:
    for page in tool.pages():
        text = page.read_text(encoding="utf-8")
        assert text == tool.filled(text), f"{page}: {REDO}"


def test_no_page_has_a_measured_number_outside_of_a_figure(tool: ModuleType) -> None:
    """But for decisions and reports/README.md, which are dated."""
    for page in tool.pages():
        path = str(page.relative_to(ROOT))
        if not path.startswith(("docs/decisions/", "reports/")):
            text = _CODE.sub("", _FIGURE.sub("", page.read_text(encoding="utf-8")))
            assert set(_MEASURED.findall(text)) <= LIMITS.get(path, set()), (
                f"{path}: make it a figure of tools/claims.py"
            )


def test_every_generated_page_is_that_of_its_record(tool: ModuleType) -> None:
    for path, table in tool.tables.TABLES.items():
        assert (ROOT / path).read_text(encoding="utf-8") == table.page(), f"{path}: {REDO}"
    assert (ROOT / tool.LIST).read_text(encoding="utf-8") == tool.listed(), REDO
    assert (ROOT / tool.published.ROWS).read_bytes() == tool.published.table(), REDO


def test_the_kept_report_is_what_arena_report_writes_today(tool: ModuleType) -> None:
    """But for PNG files, whose compression depends on the library."""
    made = dict(tool.tables.report())
    folder = tool.tables.FULL_REPORT
    assert {name for name in made if not (folder / name).is_file()} == set()
    stale = [
        name for name in made if not name.endswith(".png") and not tool.same((folder / name).read_bytes(), made[name])
    ]
    assert stale == [], REDO


def test_every_generated_page_names_its_records_with_dates_and_commits(tool: ModuleType) -> None:
    tables = [
        path for path in (ROOT / "reports" / "tables").glob("*.md") if path.name not in ("agreement.md", "claims.md")
    ]
    assert {str(path.relative_to(ROOT)) for path in tables} == set(tool.tables.TABLES), "a page that nothing makes"
    for table in tool.tables.TABLES.values():
        for source in table.sources:
            assert tool.kept.records()[source].dates


def test_every_record_is_there_and_of_the_day_that_is_said(tool: ModuleType) -> None:
    known = tool.kept.records()
    assert [path for path in known if not (ROOT / path).is_file()] == []
    for archive in (tool.kept.FULL, tool.kept.QUICKSTART):
        days = {trial.started_at[:10] for trial in tool.kept.run(archive).trials}
        assert days == set(known[archive].dates)


def test_every_figure_stands_somewhere_and_has_a_source(tool: ModuleType) -> None:
    assert set(tool.used()) == set(tool.FIGURES)
    for figure in tool.FIGURES.values():
        assert figure.sources and all((ROOT / source).exists() for source in figure.sources)


def test_a_text_that_differs_from_its_record_is_seen(tool: ModuleType) -> None:
    stale = "It is <!-- figure: adapters -->1.73×<!-- end --> here."
    assert tool.filled(stale) == f"It is <!-- figure: adapters -->{tool.FIGURES['adapters'].text()}<!-- end --> here."
    assert "1.73" not in tool.filled("<!-- figure: task-types -->1.73×<!-- end -->\n")


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("a <!-- figure: adapters -->text", "not closed"),
        ("a text<!-- end -->", "not closed"),
        ("a <!-- figure: no-such -->text<!-- end -->", "no figure 'no-such'"),
        ("<!-- figure: adapters -->text<!-- end -->", "begins a line"),
        ("a <!-- figure: task-types -->text<!-- end -->", "begins a line"),
    ],
)
def test_a_marker_that_is_not_right_is_refused(tool: ModuleType, page: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tool.filled(page)


def test_the_readme_lists_a_task_type_with_the_number_of_its_tasks() -> None:
    count = Counter(str(task.task_type) for task in load_corpus())
    folders = [folder for folder in (ROOT / "corpora").iterdir() if folder.is_dir()]
    others = Counter(str(task.task_type) for folder in folders for task in load_corpus(folder))
    listed = re.findall(r"^\| `(\w+2\w+)` \| .* \| (\d+) \| (\d+) \|$", README, re.MULTILINE)
    assert {*count, *others} == {kind for kind, _, _ in listed}
    assert [(kind, int(own), int(more)) for kind, own, more in listed] == [
        (kind, count[kind], others[kind]) for kind, _, _ in listed
    ]


def test_a_kernel_that_is_no_kernel_gets_the_reward_that_the_page_says() -> None:
    """`...` is Python that compiles and defines nothing."""
    page = (ROOT / "docs" / "evaluate" / "frameworks.md").read_text(encoding="utf-8")
    compile("...", "kernel.py", "exec")
    assert f"here {REWARDS[Status.LOAD_ERROR]:.0f}, it defines no function" in page


def test_experts_are_credited_as_the_table_says(tool: ModuleType) -> None:
    run = tool.kept.run(tool.kept.FULL)
    found = tool.full_run.credits(run)
    assert len(found) == 190
    for one in found:
        assert one.before <= one.now <= one.measured * (1 + 1e-12)
        assert one.noisy or one.before == one.now == one.measured


def test_the_error_of_the_clock_that_verify_allows_is_no_less_than_was_seen() -> None:
    figures = load("figures.corpus")
    logs = ["\n".join(load("figures.kept").lines(path)) for path in figures.TIMINGS]
    worst = [float(text) for log in logs for text in figures._WORST.findall(log)]
    assert max(worst) / 100 <= CLOCK_ERROR


def test_the_last_digits_of_a_number_are_those_of_the_processor(tool: ModuleType) -> None:
    assert tool.same(b"a,1.7169737141070347,2", b"a,1.7169737141070343,2")
    for other in (b"a,1.7169737141870347,2", b"b,1.7169737141070347,2", b"a,1.7169737141070347,3", b"a,1.5,2"):
        assert not tool.same(b"a,1.7169737141070347,2", other)
