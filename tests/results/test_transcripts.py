"""Transcript folders: written as things come, readable after a kill, bounded whatever an agent prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.errors import RecordError
from arena.results import transcripts
from arena.results.session import Evaluated, Event, EventKind, Tokens
from arena.results.transcripts import (
    TranscriptWriter,
    find_transcripts,
    read_raw,
    read_transcript,
    transcript_path,
)
from arena.results.verdict import Status

CALL = Event(EventKind.TOOL_CALL, "ls\nä", 1.5, "Bash", "c1", "p", "+x", True, 3, Tokens(5, 6, 7), 0.25)


def evaluated(number: int, speedup: float | None = 1.5) -> Evaluated:
    status = Status.PASSED if speedup else Status.WRONG_RESULT
    return Evaluated(number, 10.0 * number, 2.0, status, speedup, f"hash{number}")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    folder = transcript_path(tmp_path, "codex", "hip2hip/modules/softmax", 2)
    assert folder == tmp_path / "transcripts" / "codex" / "hip2hip.modules.softmax.2"
    with TranscriptWriter(folder, "kernel.hip") as writer:
        writer.event(CALL)
        writer.raw('{"a": 1}\n', 0.5, "stderr")
        for number in (10, 9):
            writer.evaluation(evaluated(number), b"\xff kernel", f"text {number}", b'{"n": 1}')
    found = read_transcript(folder)
    assert found.events == (CALL,)
    assert [one.evaluated for one in found.evaluations] == [evaluated(9), evaluated(10)]
    last = found.evaluations[1]
    assert (last.kernel, last.kernel_file, last.text, last.content) == (
        b"\xff kernel",
        "kernel.hip",
        "text 10",
        b'{"n": 1}',
    )
    assert [(line.line, line.stream, line.at_s) for line in read_raw(folder)] == [('{"a": 1}', "stderr", 0.5)]
    assert find_transcripts(tmp_path) == [folder]


def test_every_event_is_on_disk_before_the_writer_is_closed(tmp_path: Path) -> None:
    writer = TranscriptWriter(tmp_path)
    writer.event(CALL)
    writer.raw("line", 1.0)
    assert read_transcript(tmp_path).events == (CALL,)
    assert len(list(read_raw(tmp_path))) == 1
    writer.close()


def test_a_last_line_that_was_cut_off_is_left_out_and_one_in_the_middle_is_an_error(tmp_path: Path) -> None:
    with TranscriptWriter(tmp_path) as writer:
        writer.event(CALL)
        writer.event(CALL)
    events = tmp_path / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-20])
    assert read_transcript(tmp_path).events == (CALL,)
    events.write_bytes(b'{"kind": "messa\n' + msgspec.json.encode(CALL) + b"\n")
    with pytest.raises(RecordError, match=r"events\.jsonl:1"):
        read_transcript(tmp_path)


def test_a_trial_that_is_run_again_starts_afresh(tmp_path: Path) -> None:
    with TranscriptWriter(tmp_path) as writer:
        writer.event(CALL)
        writer.raw("old", 0.0)
        writer.evaluation(evaluated(1), b"old", "old", b"{}")
    with TranscriptWriter(tmp_path):
        pass
    found = read_transcript(tmp_path)
    assert found.events == ()
    assert found.evaluations == ()
    assert list(read_raw(tmp_path)) == []


def test_a_long_line_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "LINE_LIMIT", 100)
    with TranscriptWriter(tmp_path) as writer:
        writer.raw("x" * 250, 0.0)
        writer.event(Event(EventKind.MESSAGE, "y" * 250))
    (line,) = read_raw(tmp_path)
    assert (line.line, line.dropped) == ("x" * 100, 150)
    (event,) = read_transcript(tmp_path).events
    assert event.text == "y" * 100 + "\n[150 more characters were dropped]"


def test_a_file_stops_growing_and_its_last_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "FILE_LIMIT", 4000)
    with TranscriptWriter(tmp_path) as writer:
        for _ in range(200):
            writer.raw("x" * 80, 0.0)
            writer.event(CALL)
    for name in ("raw.jsonl", "events.jsonl"):
        assert 3000 < (tmp_path / name).stat().st_size <= 4000
    *_, last = read_raw(tmp_path)
    assert "dropped" in last.line
    assert last.stream == "harness"
    events = read_transcript(tmp_path).events
    assert events[-1].kind is EventKind.NOTE
    assert "dropped" in events[-1].text
    assert events[0] == CALL


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "lone \ud800 surrogate"},
        {"cost_usd": float("nan")},
        {"at_s": float("inf")},
        {"tokens": Tokens(10**30, -(10**30), 0)},
        {"number": 10**30},
    ],
    ids=str,
)
def test_whatever_a_program_reports_can_be_stored(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with TranscriptWriter(tmp_path) as writer:
        writer.event(Event(EventKind.MESSAGE, **wrong))
        writer.raw("\ud800", float("nan"))
    assert len(read_transcript(tmp_path).events) == 1
    assert len(list(read_raw(tmp_path))) == 1


def test_an_evaluation_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    with TranscriptWriter(tmp_path) as writer:
        writer.evaluation(evaluated(1), b"k", "t", b"{}")
        half = tmp_path / "evaluations" / ".2"
        half.mkdir()
        (half / "kernel.py").write_bytes(b"k")
        assert [one.evaluated.number for one in read_transcript(tmp_path).evaluations] == [1]
        writer.evaluation(evaluated(2), b"k2", "t", b"{}")
    assert [one.kernel for one in read_transcript(tmp_path).evaluations] == [b"k", b"k2"]


def test_errors_name_the_place(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no transcript here"):
        read_transcript(tmp_path)
    with TranscriptWriter(tmp_path) as writer:
        writer.evaluation(evaluated(1), b"k", "t", b"{}")
    (tmp_path / "evaluations" / "1" / "evaluated.json").write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match="evaluations/1"):
        read_transcript(tmp_path)
