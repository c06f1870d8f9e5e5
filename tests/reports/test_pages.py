"""The report: a self-contained page with every number, plots that are PNG, and data that can be read back."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from arena.errors import RecordError, UsageError
from arena.reports import formats
from arena.reports.groups import groups
from arena.reports.measures import MEASURES
from arena.reports.pages import Report, write_report
from arena.reports.plots import PLOTS
from arena.reports.results import results_frame
from arena.reports.rows import trial_rows
from arena.reports.standings import standings
from arena.reports.tables import markdown, write_csv
from arena.results.verdict import Status
from arena.runs.records import RunRecords

from . import builders as b

VOID = {"meta", "link", "input", "br", "line", "circle", "polyline"}
LOADS = {"src", "srcset", "href", "data", "action"}


class Page(HTMLParser):
    """What a test wants to know of a page: loads, headings, text, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: Counter[str] = Counter()
        self.metas: dict[str, str] = {}
        self.open: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.bare_tables = 0
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.loads += [value for name, value in named.items() if name in LOADS]
        if tag == "meta" and "name" in named:
            self.metas[named["name"]] = named["content"]
        self.ids += [value for name, value in named.items() if name == "id"]
        if tag == "table" and "div" not in self.open:
            self.bare_tables += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open and "script" not in self.open:
            self.words.append(data)


def sample() -> RunRecords:
    """Two agents, three tasks of two types, with a failure, a missing trial, a noisy case and a name to escape."""
    bad = b.heldout("h2", None, kind="alignment", candidate=Status.WRONG_RESULT)
    trials = [
        b.trial("hip2hip/m/gelu", cases=[b.case("s1", 2.0), b.case("s2", 2.0, noisy=True), b.heldout(), bad]),
        b.trial("triton2triton/n/rms", cases=[b.case("s1", 1.25), b.heldout()]),
        b.trial("hip2hip/m/silu", Status.COMPILE_ERROR, detail="expected <int> & 'b'", agent="beta"),
        b.trial("hip2hip/m/gelu", cases=[b.case("s1", 3.0), b.heldout()], agent="beta"),
    ]
    return b.run(trials, tasks=["hip2hip/m/gelu", "triton2triton/n/rms", "hip2hip/m/silu"], attempts=1, name="june")


def renamed(run: RunRecords) -> RunRecords:
    trials = tuple(type(trial)(**{**vars(trial), "run": run.info.run}) for trial in run.trials)
    return RunRecords(run.path, run.info, trials)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return write_report([renamed(sample())], tmp_path_factory.mktemp("out") / "made" / "here")


@pytest.fixture(scope="module")
def page(report: Report) -> Page:
    return Page(report.index.read_text(encoding="utf-8"))


def test_the_page_is_self_contained_and_well_formed(page: Page, report: Report) -> None:
    assert page.open == []
    for load in page.loads:
        assert load.startswith(("data:", "#")) or (report.index.parent / load).is_file(), load
    assert page.tags["script"] == 1, "ours, and no other"
    assert page.metas["viewport"] == "width=device-width, initial-scale=1"
    assert page.tags["h1"] == 1
    assert page.bare_tables == 0, "every table scrolls inside its own container"


def test_the_page_states_where_it_was_measured(page: Page) -> None:
    for fact in ("june", "rocm", "AMD Instinct MI300X", "gfx942", "6.10.5", "bubblewrap", "torch 2.8.0", "arena 0.1.0"):
        assert fact in page.text


def test_all_numbers_are_on_the_page(page: Page, report: Report) -> None:
    for group in report.groups:
        for measure in MEASURES:
            quantity = group.mean.get(measure.name)
            if quantity is not None:
                assert formats.number(quantity.value, measure.unit) in page.text, measure.name
                assert formats.interval(quantity, measure.unit) in page.text, measure.name
    tasks = report.index.parent / "tasks"
    gelu, silu = (Page((tasks / f"hip2hip.m.{name}.html").read_text(encoding="utf-8")) for name in ("gelu", "silu"))
    assert "1.00 ms → 500 µs" in gelu.text.replace("1 ms", "1.00 ms")
    assert "expected <int> & 'b'" in silu.text
    for words in (
        "1.98× overfit, unseen 1/2",
        "failed: compile error",
        "no verdict: no record",
        "1/2",
        "alignment",
        "regression",
    ):
        assert words in page.text


def test_doubts_are_on_the_page_and_in_the_summary(page: Page, report: Report) -> None:
    summary = (report.index.parent / "summary.md").read_text(encoding="utf-8")
    assert {warning.problem.split(" ", 2)[2] for warning in report.warnings}
    for warning in report.warnings:
        assert warning.problem in page.text
        assert warning.problem in summary
    assert "arena run configs/demo.yaml" in page.text


def test_files_and_plots(report: Report) -> None:
    names = {path.relative_to(report.index.parent).as_posix() for path in report.files}
    assert names >= {"summary.md", "trials.csv", "cases.csv", "measures.csv", "report.json"}
    assert {f"plots/{plot.name}.svg" for plot in PLOTS} <= names
    assert {f"tasks/{name}.html" for name in ("hip2hip.m.gelu", "hip2hip.m.silu", "triton2triton.n.rms")} <= names
    for path in report.files:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_csv_and_json_hold_what_was_measured(report: Report) -> None:
    folder = report.index.parent
    measures = pd.read_csv(folder / "measures.csv")
    document = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    trials = pd.read_csv(folder / "trials.csv")
    assert len(trials) == 6
    assert Counter(trials["outcome"]) == {"solved": 2, "overfit": 1, "no verdict": 2, "failed": 1}
    assert Counter(trials["stage_status"]) == {"passed": 2, "wrong_result": 1, "missing": 2, "compile_error": 1}
    assert len(pd.read_csv(folder / "cases.csv")) == 8
    for group, written in zip(report.groups, document["groups"], strict=True):
        mine = measures[(measures.agent == group.label) & (measures.task_type == group.task_type)]
        rows = mine[mine.attempts == "mean"].set_index("measure")
        for name, quantity in group.mean.items():
            if quantity is None:
                assert pd.isna(rows.value[name])
                assert written["mean_of_attempts"][name] is None
            else:
                assert rows.value[name] == pytest.approx(quantity.value, rel=1e-15)
                assert written["mean_of_attempts"][name]["low"] == quantity.low


def test_a_gpu_report_does_not_mention_an_emulation(page: Page) -> None:
    assert "emulation" not in page.text


def test_every_table_and_plot_of_the_cpu_platform_says_emulation(tmp_path: Path) -> None:
    report = write_report([b.simple([1.5, 2.0, None], env=b.environment(b.CPU))], tmp_path)
    page = Page(report.index.read_text(encoding="utf-8"))
    timed_tables, timed_plots = 3, sum(plot.timed for plot in PLOTS)
    assert page.text.count(formats.EMULATED) >= 1 + timed_tables + timed_plots
    assert formats.EMULATED in (tmp_path / "summary.md").read_text(encoding="utf-8")
    for name in ("trials.csv", "cases.csv"):
        assert set(pd.read_csv(tmp_path / name)["latencies"]) == {"emulation"}
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["latencies"] == "emulation"


def test_a_timed_plot_says_where_it_is_of_an_emulation() -> None:
    found = groups(trial_rows([b.simple([1.5, 2.0])]))
    for plot in PLOTS:
        charts = [plot.draw(found, emulated) for emulated in (True, False)]
        assert ["emulated ratio" in chart.svg() for chart in charts if chart] == [plot.timed, False]


def test_two_runs_in_one_report(tmp_path: Path) -> None:
    report = write_report([b.simple([1.5, 2.0]), b.simple([1.0, None], name="r2")], tmp_path)
    assert report.title == "r1, r2"
    assert {group.label for group in report.groups} == {"alpha (r1)", "alpha (r2)"}
    with pytest.raises(RecordError):
        write_report([b.simple([1.0]), b.simple([1.0], name="r2", env=b.environment(b.CPU))], tmp_path)
    with pytest.raises(UsageError):
        write_report([], tmp_path)


@pytest.mark.parametrize(
    "run",
    [
        b.run([], tasks=[], agents=["alpha"]),
        b.run([], tasks=["hip2hip/m/a"], agents=["alpha"]),
        b.simple([None, None]),
        b.simple([1.0]),
    ],
    ids=["nothing planned", "nothing recorded", "all failed", "one task"],
)
def test_degenerate_runs_still_give_a_report(run: RunRecords, tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    for kind in ("png", "svg"):
        (tmp_path / "plots" / f"speedup.{kind}").write_bytes(b"of an earlier report")
    report = write_report([run], tmp_path)
    assert Page(report.index.read_text(encoding="utf-8")).open == []
    json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    pd.read_csv(tmp_path / "cases.csv")
    for kind, head in (("svg", b"<svg"), ("png", b"\x89PNG")):
        drawn = tmp_path / "plots" / f"speedup.{kind}"
        assert not drawn.exists() or drawn.read_bytes().startswith(head)


FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\tx",
    " =1",
    "\n=1",
    "＝1+1",
    '=HYPERLINK("http://x";"y")',
    "-cmd|' /C calc'!A0",
]


def test_no_text_is_a_formula_to_a_spreadsheet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"detail": [*FORMULAS, "plain -1", "-0.5", "1e3", None, "a\x1b[2J"], "ms": [-1.5] * 15})
    read = pd.read_csv(write_csv(frame, tmp_path / "x.csv"), dtype={"detail": str}, keep_default_na=False)
    assert read["detail"].tolist() == [*(f"'{text}" for text in FORMULAS), "plain -1", "-0.5", "1e3", "", "a�[2J"]
    assert read["ms"].tolist() == [-1.5] * 15, "numbers stay numbers"


def test_frames_without_text_and_without_rows_are_written_as_they_are(tmp_path: Path) -> None:
    for frame in (pd.DataFrame({"a": [1, 2], "b": [True, None], "c": [0.1 + 0.2, None]}), pd.DataFrame(columns=["a"])):
        assert write_csv(frame, tmp_path / "x.csv").read_text() == frame.to_csv(index=False)


def test_markdown_holds_no_control_codes() -> None:
    assert "\x1b" not in markdown(pd.DataFrame({"a": ["\x1b[2J\r\n"]}))


def test_markdown_escapes_pipes() -> None:
    assert markdown(pd.DataFrame([{"a|b": "x|y\nz"}])).splitlines()[2] == "| x&#124;y z |"
    rows = trial_rows([b.simple([2.0])])
    assert markdown(results_frame(standings(rows, groups(rows)), emulated=False)).count("\n") == 4


def test_the_summary_holds_no_html_and_no_links_of_a_record(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> ![x](https://evil/x.png) [a][b] | end\n# Heading"
    device = replace(b.GPU, name=evil, driver=evil)
    made = b.simple([2.0, None], env=replace(b.environment(device, torch=evil), isolation=evil))
    info = replace(made.info, config=evil, arena_version=evil, started_at=evil)
    trials = [replace(one, detail=evil, session=replace(b.session(), model=evil, version=evil)) for one in made.trials]
    broken = replace(trials[-1], status=Status.HARNESS_ERROR, evaluation=None)
    report = write_report([replace(made, info=info, trials=(*trials[:-1], broken))], tmp_path)
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "&lt;script&gt;" in text and "<script" not in text and "](" not in text and "\n# Heading" not in text
    for page in (path for path in (*report.files, report.index) if path.suffix == ".html"):
        assert "alert(1)</script>" not in page.read_text(encoding="utf-8"), page
