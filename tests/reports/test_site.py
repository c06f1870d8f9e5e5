"""The leaderboard: boards, levels and pages, and a hostile submission that stays plain text."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.errors import FileError, RecordError, UsageError
from arena.reports.site import MARK, write_site
from arena.reports.site_entries import read_entries, slug
from arena.results.record import Trial
from arena.results.release import Corpus
from arena.results.session import Event, EventKind
from arena.results.transcripts import TranscriptWriter, transcript_path
from arena.results.verdict import Status
from arena.results.verification import (
    FILE,
    JUDGED_FILE,
    Figure,
    FigureKind,
    JudgedHere,
    PrivateDraw,
    Reproduction,
    TrialVerification,
    Verification,
)
from arena.runs import records
from arena.runs.records import RunRecords
from arena.runs.submission import records_hash
from tests.reports.builders import case, environment, evaluated, heldout, run, simple, timing, trial

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>javascript:alert(3)\u202e\u0007"
FORMULAS = ("=HYPERLINK(1)", "+1+A1", "-1+A1", "@SUM(1)", "\t=1", "\r=1")


def kept(root: Path, made: RunRecords, **changes: object) -> Path:
    """Write a run folder as `arena run` does."""
    folder = root / made.info.run
    records.write(folder / records.HEAD, replace(made.info, **changes))  # type: ignore[arg-type]
    for one in made.trials:
        records.write_trial(folder, one)
    return folder


def findings_of(folder: Path) -> Path:
    """Return the folder where the owner of the board keeps findings."""
    return folder.parent.parent / f"findings-{folder.parent.name}"


def verification_of(
    folder: Path,
    *,
    outcome: Reproduction = Reproduction.REPRODUCED,
    failed: int = 1,
    judged_first: Trial | None = None,
) -> Path:
    """Write a verification of a run's first trial, and how it was judged here: as recorded unless told otherwise."""
    read = records.read_run(folder)
    first = read.trials[0]
    figure = Figure(FigureKind.STATUS, "status", "passed", "passed", outcome)
    private = PrivateDraw(8 - failed, 8, None, ())
    judged = TrialVerification("alpha", first.task, first.task_type, 1, False, (figure,), private)
    found = Verification(
        read.info.run, records_hash(folder), "", "", read.info.environment, read.info.environment,
        0.004, None, 1, 8, 2, (judged,),
    )  # fmt: skip
    path = findings_of(folder) / folder.name / FILE
    records.write(path, found)
    records.write(path.with_name(JUDGED_FILE), JudgedHere(found.records_hash, (judged_first or first,), (), {}))
    return path


def audit_of(folder: Path, digest: str = "") -> Path:
    path = findings_of(folder) / f"{folder.name}.audit.yaml"
    text = f"records_hash: '{digest or records_hash(folder)}'\nby: A. Reader\ndate: '2026-01-02'\n"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "found: nothing unusual\nagents: [alpha]\n", encoding="utf-8")
    return path


def no_report(runs: Sequence[RunRecords], out: Path) -> None:
    """Stands for the pages of a run, which have tests of their own and take a second."""
    out.mkdir(parents=True)


def index_of(*folders: Path, out: Path) -> str:
    findings = findings_of(folders[0])
    return write_site(read_entries(folders, findings if findings.is_dir() else None), out, no_report).read_text(
        encoding="utf-8"
    )


def test_the_level_follows_from_what_lies_beside_the_run_alone(tmp_path: Path) -> None:
    folder = kept(tmp_path, simple([2.0, 3.0]))
    inside = folder / "r1.verification"
    inside.mkdir()
    assert "records only" in index_of(folder, out=tmp_path / "site")
    (inside / FILE).write_bytes(verification_of(folder).read_bytes())
    page = index_of(folder, out=tmp_path / "site")
    assert "re-judged by us (1 of 2 trials, 1 of 1 figures reproduced)" in page and "records only" not in page
    assert "100.0 % [20.7 %, 100.0 %] of 1" in page  # the private drop
    audit_of(folder)
    assert "re-judged by us (1 of 2 trials, 1 of 1 figures reproduced), transcript audited (2026-01-02)" in index_of(
        folder, out=tmp_path / "site"
    )
    agent = (tmp_path / "site" / "agents" / f"{slug('alpha')}.html").read_text()
    assert "A. Reader, 2026-01-02: nothing unusual" in agent


def test_what_was_not_reproduced_or_not_decided_is_said(tmp_path: Path) -> None:
    folder = kept(tmp_path, simple([2.0, 3.0]))
    verification_of(folder, outcome=Reproduction.NOT_REPRODUCED)
    page = index_of(folder, out=tmp_path / "site")
    assert "claims not reproduced (1 of 2 trials, 0 of 1 figures reproduced)" in page and "re-judged by us" not in page
    assert "alpha (1 of 1 claims not reproduced, 1 trials claimed)" in page
    assert "Not credited, since claims were not reproduced: alpha, triton2triton/norm/t00, attempt 1." in page
    assert "1/2" in page and "3.00×" in page and "2.00×" not in page  # what is credited is the other trial alone
    task = (tmp_path / "site" / "tasks" / f"{slug('triton2triton/norm/t00')}.html").read_text()
    assert "2.00×" not in task
    path = verification_of(folder)
    file = records.read(path, Verification)
    doubtful = Figure(FigureKind.SPEEDUP, "speedup", None, None, Reproduction.UNDECIDED)
    two = replace(file.trials[0], figures=(*file.trials[0].figures, doubtful))
    records.write(path, replace(file, trials=(two,)))
    assert "1 of 2 figures reproduced, 1 undecided" in index_of(folder, out=tmp_path / "site")
    verification_of(folder, outcome=Reproduction.UNDECIDED)
    assert "records only" in index_of(folder, out=tmp_path / "site")


def test_a_verification_that_its_author_wrote_is_shown_as_claimed(tmp_path: Path) -> None:
    runs = tmp_path / "submissions"
    forged, honest = kept(runs, simple([9.0], name="r1")), kept(runs, simple([2.0], name="r2"))
    own = verification_of(forged)
    beside = forged.with_name("r1.verification") / FILE
    for place in (beside, forged / FILE, forged / "r1" / FILE):
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(own.read_bytes())
    own.unlink()
    verification_of(honest)
    page = index_of(forged, honest, out=tmp_path / "site")
    rows = {name: re.search(f"<tr>(?:(?!<tr>).)*{name}-(?:(?!<tr>).)*", page, re.DOTALL)[0] for name in ("r1", "r2")}  # type: ignore[index]
    assert "alpha (1 trials claimed)" in rows["r1"] and "records only" in rows["r1"] and "<td>–</td>" in rows["r1"]
    assert "claimed" not in rows["r2"] and "re-judged by us" in rows["r2"] and "<td>1</td>" in rows["r2"]
    assert page.index("records only") > page.index("re-judged by us")
    for place in (runs, forged, forged / "r1"):
        with pytest.raises(UsageError, match="a submission could bring its own verification"):
            read_entries([forged], place)


def test_a_board_shows_what_was_found_here_whatever_the_record_says(tmp_path: Path) -> None:
    """Its speed, its cases and its tasks; of another device, and without what was found, it is a claim."""
    made = simple([9.0])
    folder = kept(tmp_path, made, latency_bound=made.info.tasks)
    (slower,) = simple([2.0]).trials
    path = verification_of(folder, judged_first=slower)
    here = records.read(path.with_name(JUDGED_FILE), JudgedHere)
    records.write(path.with_name(JUDGED_FILE), replace(here, families={made.info.tasks[0]: "norm"}))
    (entry,) = read_entries([folder], findings_of(folder))
    (row,) = entry.rows
    assert not entry.claimed("alpha") and row.solved and row.speedup is not None
    assert row.speedup.value == pytest.approx(2.0) and not row.latency_bound and row.family == "norm"
    file = records.read(path, Verification)
    other = replace(file.repeated_on, device=replace(file.repeated_on.device, name="another"))
    records.write(path, replace(file, repeated_on=other))
    assert read_entries([folder], findings_of(folder))[0].claimed("alpha") == 1
    records.write(path, file)
    path.with_name(JUDGED_FILE).unlink()
    (entry,) = read_entries([folder], findings_of(folder))
    assert entry.claimed("alpha") == 1 and "verify the run again" in entry.notes[0]


def test_records_that_changed_afterwards_lose_their_level(tmp_path: Path) -> None:
    folder = kept(tmp_path, simple([2.0, 3.0]))
    verification_of(folder)
    audit_of(folder)
    records.write_trial(folder, replace(records.read_run(folder).trials[0], detail="changed"))
    page = index_of(folder, out=tmp_path / "site")
    assert "re-judged by us" not in page and "transcript audited" not in page
    assert "the verification does not count" in page and "the audit does not count" in page


def test_a_malformed_audit_names_its_line(tmp_path: Path) -> None:
    folder = kept(tmp_path, simple([2.0]))
    audit_of(folder).write_text("by: me\n")
    with pytest.raises(FileError, match="records_hash"):
        read_entries([folder], findings_of(folder))


def test_boards_do_not_mix_releases_or_devices(tmp_path: Path) -> None:
    folders = [
        kept(tmp_path, simple([2.0], name="old")),
        kept(tmp_path, simple([2.0], name="one"), corpus=Corpus(1, "a" * 64)),
        kept(tmp_path, simple([2.0], name="two"), corpus=Corpus(2, "b" * 64)),
        kept(tmp_path, simple([2.0], name="both"), corpus=Corpus(2, "b" * 64)),
    ]
    page = index_of(*folders, out=tmp_path / "site")
    headings = [line for line in re.findall("<h2>(.*)</h2>", page) if line.endswith("all task types")]
    assert [re.search("release.*:", line)[0] for line in headings] == [  # type: ignore[index]
        "release 1 (aaaaaaaaaaaa):", "release 2 (bbbbbbbbbbbb):", "release unknown:"
    ]  # fmt: skip
    for name in ("old", "one", "two", "both"):
        assert f'href="runs/{slug(name)}/index.html"' in page
        assert (tmp_path / "site" / "runs" / slug(name)).is_dir()


def test_boards_take_full_evaluations_alone(tmp_path: Path) -> None:
    screened = kept(tmp_path, run(name="quick"), evaluation={"effort": "screen"})
    with pytest.raises(RecordError, match="its effort is screen"):
        read_entries([screened])


def test_the_best_known_speed_of_a_task_rises_over_time(tmp_path: Path) -> None:
    task, folders = "triton2triton/norm/rms", []
    for day, speed in enumerate((1.5, 1.2, 2.0), 1):
        cases = (case("s", speed), heldout("h", speed))
        made = replace(trial(task, cases=cases, run=f"r{day}"), started_at=f"2026-01-0{day}T00:00:00+00:00")
        folders.append(kept(tmp_path, run([made], name=f"r{day}")))
        verification_of(folders[-1])
    claimed = trial(task, cases=(case("s", 7.0), heldout("h", 7.0)), run="r5")
    folders.append(kept(tmp_path, run([claimed], name="r5")))
    wrong = trial(task, cases=(case("s", 9.0), heldout("h", candidate=Status.WRONG_RESULT)), run="r4")
    folders.append(kept(tmp_path, run([wrong], name="r4")))
    index_of(*folders, out=tmp_path / "site")
    page = (tmp_path / "site" / "tasks" / f"{slug(task)}.html").read_text()
    assert re.findall(r"<td>(\d\.\d\d)×", page) == ["2.00", "1.50"] and page.count("<polyline") == 1
    assert "9.00×" not in page and "7.00×" not in page and "2026-01-03 00:00" in page


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def hostile(root: Path) -> Path:
    """A run whose every free text attacks: details, labels, versions, device, options, a transcript."""
    device = replace(environment().device, name=EVIL, driver=EVIL)
    env = replace(environment(device, torch=EVIL), isolation=EVIL)
    labelled = [replace(one, label=EVIL, detail=EVIL) for one in (case("s", 2.0), heldout("h", 2.0))]
    odd = replace(labelled[0], timing=replace(timing(2.0), doubted=EVIL, undecided=EVIL, cache=EVIL))
    made: list[Trial] = [trial("triton2triton/norm/t1", cases=[odd, *labelled[1:]], env=env, detail=EVIL)]
    for number, formula in enumerate(FORMULAS, 2):
        found = trial(f"triton2triton/norm/t{number}", Status.WRONG_RESULT, [], env=env, detail=formula)
        made.append(replace(found, detail=formula))
    head = run(made, env=env, config=EVIL)
    with TranscriptWriter(transcript_path(root / head.info.run, *made[0].key)) as writer:
        writer.raw(EVIL, 1.0)
        writer.event(Event(EventKind.TOOL_CALL, EVIL, 1.0, tool=EVIL, diff=EVIL))
        writer.evaluation(evaluated(1), EVIL.encode(), EVIL, b"{}")
    return kept(root, head, config_text=EVIL, arena_version=EVIL, evaluation={EVIL: EVIL}, started_at=EVIL)


def test_a_hostile_submission_stays_plain_text(tmp_path: Path) -> None:
    folder = hostile(tmp_path)
    audit_of(folder).write_text(
        f"records_hash: '{records_hash(folder)}'\nby: '<b>x</b>'\ndate: '2026-01-02'\n"
        "found: '<script>alert(4)</script>'\nagents: [alpha]\n"
    )
    out = tmp_path / "site"
    write_site(read_entries([folder]), out)
    pages = sorted(out.rglob("*.html"))
    assert len(pages) >= 12
    for path in pages:
        text = path.read_text(encoding="utf-8")
        found = Page(text)
        assert "<script>alert" not in text and "\u202e" not in text and "\u0007" not in text, path
        assert found.tags.count("script") == 1 and not any(name.startswith("on") for name, _ in found.attributes), path
        policy = [value for name, value in found.attributes if name == "content" and "default-src" in (value or "")]
        assert policy and "default-src 'none'" in str(policy[0]) and "unsafe" not in str(policy[0]), path
        for name, value in found.attributes:
            if name in ("href", "src"):
                assert value is not None and not value.lower().lstrip().startswith(("javascript:", "http", "//")), path
        for _, value in ((n, v) for n, v in found.attributes if n == "href" and v and not v.startswith(("#", "data:"))):
            assert (path.parent / value).resolve().is_relative_to(out.resolve()), (path, value)
    assert "&lt;script&gt;alert" in (out / "index.html").read_text()
    tables = sorted(out.rglob("*.csv"))
    assert len(tables) >= 4
    for path in tables:
        for row in csv.reader(io.StringIO(path.read_bytes().decode(), newline="")):
            for cell in row:
                number = re.fullmatch(r"[-+]?[\d.]+(e-?\d+)?", cell)
                assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), (path, cell)


def test_names_that_would_leave_the_folder_or_collide_do_not(tmp_path: Path) -> None:
    assert slug("a") != slug("A") and slug("a.b") != slug("a-b") and slug("") != slug(" ")
    for name in ("../../x", EVIL, "con", "x" * 5000, "\ud800", "."):
        assert re.fullmatch(r"[a-z0-9-]{8,60}", slug(name))
    one = kept(tmp_path / "a", simple([2.0]))
    two = kept(tmp_path / "b", simple([2.0]))
    with pytest.raises(UsageError, match="one of each name"):
        read_entries([one, two])


def test_numbers_that_no_measurement_has_are_refused(tmp_path: Path) -> None:
    folder = kept(tmp_path, run([trial(cases=[case("s", 2.0)])]))
    (path,) = (folder / "trials" / "alpha").iterdir()
    record = json.loads(path.read_text())
    record["evaluation"]["cases"][0]["timing"]["speedup"] = {"value": -1.0, "low": -2.0, "high": 1.0}
    path.write_text(json.dumps(record))
    with pytest.raises(RecordError, match=r"no quotient of times.*cases\[0\]\.timing"):
        read_entries([folder])


def test_only_an_earlier_site_is_replaced(tmp_path: Path) -> None:
    folder = kept(tmp_path, simple([2.0]))
    entries, out = read_entries([folder]), tmp_path / "site"
    write_site(entries, out, no_report)
    (out / "agents" / "stale.html").write_text("old")
    write_site(entries, out, no_report)
    assert not (out / "agents" / "stale.html").exists() and (out / MARK).is_file()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    with pytest.raises(UsageError, match="something else"):
        write_site(entries, tmp_path / "mine")
    with pytest.raises(UsageError, match="at least one run"):
        write_site([], out)


def test_the_command_writes_the_site(tmp_path: Path) -> None:
    folder = kept(tmp_path, simple([2.0]))
    done = CliRunner().invoke(app, ["site", str(folder), "--out", str(tmp_path / "site")])
    assert done.exit_code == 0 and "index.html" in done.output, done.output
    assert {path.name for path in (tmp_path / "site").iterdir()} >= {"method.html", "submit.html", "boards.csv"}
