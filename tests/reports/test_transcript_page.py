"""The page of a trial: self-contained, safe whatever the agent wrote, complete, and of bounded size."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from arena.reports import formats, transcript_page, transcript_views
from arena.reports.pages import write_report
from arena.reports.plots import best_so_far, session_curve
from arena.reports.rows import TrialRow, trial_rows
from arena.reports.transcript_views import EventView, event_views
from arena.results.outcome import Outcome
from arena.results.session import Ending, Event, EventKind, Flag, Tokens
from arena.results.transcripts import KeptEvaluation, Transcript, TranscriptWriter, transcript_path
from arena.results.verdict import Status
from arena.runs.records import RunRecords

from . import builders as b
from .test_pages import Page

K = EventKind
HOSTILE = "<script>alert(1)</script> \x1b[31mred\x1b[0m \"'><img src=x onerror=alert(2)> {{ 7 * 7 }}"
DIFF = "--- a/kernel.py\n+++ b/kernel.py\n@@ -1 +1 @@\n-BLOCK = 128\n+BLOCK = 1024  # <b>"
EVENTS = (
    Event(K.NOTE, "session started", 0.2),
    Event(K.REASONING, "first thought\nsecond thought", 1.5, tokens=Tokens(1200, 300, 0)),
    Event(K.MESSAGE, HOSTILE, 2.0),
    Event(K.TOOL_CALL, '{"command": "./evaluate"}', 3.0, "Bash", "c1", cost_usd=0.012),
    Event(K.EVALUATION, "all passed", 8.0, number=1),
    Event(K.TOOL_RESULT, "\n".join(f"row {n}" for n in range(60)), 9.5, call="c1"),
    Event(K.TOOL_CALL, "try sizes", 10.0, "Task", "c2"),
    Event(K.MESSAGE, "inside the subagent", 11.0, parent="c2"),
    Event(K.TOOL_CALL, "cat ../heldout.yaml", 12.0, "Bash", "s1", parent="c2"),
    Event(K.TOOL_RESULT, "no such file", 12.3, call="s1", parent="c2", failed=True),
    Event(K.TOOL_CALL, '{"file": "kernel.py"}', 20.0, "Edit", "c3", diff=DIFF),
    Event(K.MESSAGE, "of nobody's child", 21.0, parent="unknown"),
)
FLAGS = (Flag(8, "held-out cases", "cat ../heldout.yaml"),)


def kept(number: int, speedup: float | None = 1.5) -> KeptEvaluation:
    return KeptEvaluation(b.evaluated(number, speedup), b"kernel <body>\xff", "kernel.py", f"feedback {number}", b"{}")


def transcript(*events: Event) -> Transcript:
    return Transcript(Path("none"), events or EVENTS, (kept(1, 1.0), kept(2, None), kept(3, 1.83)))


def row(**changes: object) -> TrialRow:
    bad = b.heldout("h2", None, kind="alignment", candidate=Status.WRONG_RESULT)
    trial = b.trial("hip2hip/m/gelu", cases=[b.case("s1", 2.0), b.heldout(), bad])
    (found,) = trial_rows([b.run([trial])])
    mine = b.session(*(one.evaluated for one in transcript().evaluations), flags=FLAGS)
    return replace(found, session=mine, **changes)  # type: ignore[arg-type]


def flat(views: list[EventView]) -> list[EventView]:
    return [one for view in views for one in (view, *flat(view.children))]


@pytest.fixture(scope="module")
def html() -> str:
    return transcript_page.transcript_page(row(), transcript(), back="../index.html")


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_the_page_is_self_contained_and_well_formed(page: Page, html: str) -> None:
    assert page.open == []
    assert page.tags["h1"] == 1
    assert page.bare_tables == 0
    ids = set(re.findall(r' id="([^"]+)"', html))
    for load in page.loads:
        assert load.startswith("data:") or load == "../index.html" or load.removeprefix("#") in ids, load


def test_agent_text_is_inert(page: Page, html: str) -> None:
    assert page.tags["script"] == 1, "ours, and no other"
    assert "img" not in page.tags
    assert "<script>alert(1)</script> red" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\x1b" not in html
    for tag in ("script", "style"):
        text = html.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        allowed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{allowed}'" in html
    assert "default-src 'none'" in html


def test_everything_is_on_the_page(page: Page) -> None:
    for words in (
        "alpha on hip2hip/m/gelu",
        "claude_code 2.1.197",
        "model-x",
        "bubblewrap+network=allow-list",
        "10:00 at work, 0:30 paused for the judge",
        "3, 2 more refused; best 1.83× (no. 3)",
        "48.0k in (4.0k from the provider's cache), 1.5k out",
        "$0.50",
        "second thought",
        "1.2k in, 300 out",
        "$0.012",
        "6.5 s",
        "row 59",
        "inside the subagent",
        "subagent: 3 events",
        "reaches for held-out cases",
        "BLOCK = 1024 # <b>",
        "feedback 2",
        "kernel <body>\ufffd",
        "wrong result",
        "1.83× best",
        "held-out 1.50× [1.47, 1.53]",
        "alignment",
        "of nobody's child",
    ):
        assert words in page.text, words


def test_reasoning_and_long_results_are_collapsed_short_ones_are_not() -> None:
    views = {view.index: view for view in flat(event_views(transcript(), FLAGS, 1000))}
    assert {index for index, view in views.items() if view.collapsed} == {1, 5, 10}
    assert views[3].text.head == "command: ./evaluate"
    assert views[3].took == "6.5 s"
    assert views[4].evaluation is not None
    assert views[4].evaluation.speedup == "1.00×"
    assert views[8].flags == ("held-out cases",)
    assert [line.tone for line in views[10].diff] == ["at", "at", "at", "del", "add"]


def test_subagents_are_nested_and_never_in_a_circle() -> None:
    top = event_views(transcript(), (), 1000)
    assert [view.index for view in top] == [0, 1, 2, 3, 4, 5, 6, 10, 11]
    assert [child.index for child in top[6].children] == [7, 8, 9]
    selfish = [Event(K.TOOL_CALL, call="a", parent="a"), Event(K.TOOL_CALL, call="b", parent="c")]
    selfish += [Event(K.TOOL_CALL, call="c", parent="b"), Event(K.MESSAGE, parent="c")]
    assert len(flat(event_views(transcript(*selfish), (), 100))) == 4
    deep = [Event(K.TOOL_CALL, call=str(n), parent=str(n - 1)) for n in range(3000)]
    assert len(flat(event_views(transcript(*deep), (), 100))) == 3000
    assert Page(transcript_page.transcript_page(row(), transcript(*deep[:100]))).open == []


@pytest.mark.slow
def test_five_thousand_long_events_stay_usable() -> None:
    many = [Event(K.TOOL_RESULT, '"<&>' * 2500, float(n), call=str(n)) for n in range(5000)]
    html = transcript_page.transcript_page(row(), transcript(*many))
    assert len(html.encode()) <= transcript_page.MOST_BYTES
    assert html.count('<article class="event') == 5000
    assert "characters left out; the whole is in events.jsonl, line 5000" in html


def test_of_too_many_events_the_middle_is_left_out_but_what_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_views, "MOST_EVENTS", 10)
    many = [Event(K.MESSAGE, f"number {n}", float(n)) for n in range(100)]
    flags = (Flag(50, "the clock", "x"),)
    views = event_views(transcript(*many), flags, 100)
    assert [view.index for view in views] == [0, 1, 2, 3, 4, 50, 95, 96, 97, 98, 99]
    assert [view.skipped for view in views if view.skipped] == [45, 44]
    html = transcript_page.transcript_page(replace(row(), session=b.session()), transcript(*many))
    assert "90 events are not shown here" in html


def test_a_trial_without_a_record_still_has_a_page() -> None:
    missing = replace(
        row(), session=None, status=None, outcome=Outcome.NO_VERDICT, cases=(), speedup=None, heldout_speedup=None
    )
    page = Page(transcript_page.transcript_page(missing, Transcript(Path("none"), (), ())))
    assert page.open == []
    assert "no verdict: no record" in page.text
    assert "Nothing was evaluated" in page.text


def test_the_curve() -> None:
    points = [b.evaluated(1, None), b.evaluated(2, 1.5), b.evaluated(3, 1.2), b.evaluated(4, 2.0)]
    assert best_so_far(points) == [None, 1.5, 1.5, 2.0]
    drawn = session_curve(points, emulated=False)
    assert drawn is not None
    assert drawn.svg().count("<circle") == 2 * 3, "what passed, over evaluations and over minutes"
    assert drawn.svg().count('class="failed"') == 2 * 2, "a cross has two strokes"
    assert drawn != session_curve(points, emulated=True), "it says where it is an emulation"
    assert session_curve([], emulated=False) is None
    assert session_curve(points[:1], emulated=False) is not None


def sessions_run(folder: Path) -> RunRecords:
    """Two trials of an agent with sessions and transcripts, one of an agent without."""
    trials = [
        b.trial("hip2hip/m/gelu", cases=[b.case("s1", 2.0), b.heldout()]),
        b.trial("hip2hip/m/silu", Status.COMPILE_ERROR),
        b.trial("hip2hip/m/gelu", cases=[b.case("s1", 3.0), b.heldout()], agent="beta"),
    ]
    for place, ending in enumerate((Ending.FINISHED, Ending.WALL_CLOCK)):
        session = b.session(b.evaluated(1), b.evaluated(2), ending=ending, flags=FLAGS[:place])
        trials[place] = replace(trials[place], session=session)
        with TranscriptWriter(transcript_path(folder, *trials[place].key)) as writer:
            for event in EVENTS:
                writer.event(event)
    return replace(b.run(trials, tasks=["hip2hip/m/gelu", "hip2hip/m/silu"]), path=folder)


def test_the_report_links_to_the_pages_and_sums_sessions_up(tmp_path: Path) -> None:
    out = tmp_path / "report"
    report = write_report([sessions_run(tmp_path / "run")], out)
    page = Page(report.index.read_text(encoding="utf-8"))
    assert "tasks/hip2hip.m.gelu.html" in page.loads
    for name in ("gelu", "silu"):
        place = out / "tasks" / f"hip2hip.m.{name}.html"
        task = Page(place.read_text(encoding="utf-8"))
        (link,) = (load for load in task.loads if "transcripts/" in load)
        assert link == f"../transcripts/r1/alpha/hip2hip.m.{name}.1.html"
        back = Page((place.parent / link).read_text(encoding="utf-8")).loads
        assert "../../../index.html#tasks" in back
    for words in ("Sessions", "4 [2.0 each]", "20.0 [10.0 each]", "99.0k [49.5k each]", "$1.00 [$0.50 each]"):
        assert words in page.text
    assert "finished 1, wall clock 1" in page.text
    assert "1 in 1 of 2" in page.text
    assert "## Sessions" in (out / "summary.md").read_text(encoding="utf-8")
    frame = pd.read_csv(out / "sessions.csv")
    assert list(frame.ending) == ["finished", "wall_clock"]
    assert list(frame.best_seen_speedup) == [1.5, 1.5]


def test_without_sessions_the_report_says_nothing_of_them_and_stale_pages_go(tmp_path: Path) -> None:
    write_report([sessions_run(tmp_path / "run")], tmp_path)
    write_report([b.simple([1.0])], tmp_path)
    assert not (tmp_path / "sessions.csv").exists()
    assert list((tmp_path / "transcripts").rglob("*.html")) == []
    assert "Sessions" not in Page((tmp_path / "index.html").read_text(encoding="utf-8")).text
    assert "Sessions" not in (tmp_path / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_report_into_the_run_folder_itself_keeps_its_transcripts(tmp_path: Path) -> None:
    run = sessions_run(tmp_path)
    write_report([run], tmp_path)
    write_report([run], tmp_path)
    assert len(list((tmp_path / "transcripts").rglob("events.jsonl"))) == 2
    assert len(list((tmp_path / "transcripts").rglob("*.html"))) == 2


def test_short_formats() -> None:
    assert [formats.clock(value) for value in (0, 125.4, 3725, -1)] == ["0:00", "2:05", "1:02:05", "0:00"]
    assert [formats.count(value) for value in (950, 12_345, 999_950, 2_500_000)] == ["950", "12.3k", "1.0M", "2.5M"]
    assert [formats.dollars(value) for value in (0, 1.239, 0.0032)] == ["$0.00", "$1.24", "$0.0032"]
