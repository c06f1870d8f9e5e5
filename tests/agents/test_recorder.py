"""What goes on disk: lines and events without secrets, also where a secret comes in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.agents.base import Feedback
from arena.agents.budget import Budget
from arena.agents.parsers import make_parser
from arena.agents.recorder import RecordedService, Recorder
from arena.agents.redaction import Redactor
from arena.results.session import Evaluated, EventKind, Limits
from arena.results.transcripts import TranscriptWriter, read_transcript
from arena.results.verdict import Status
from tests.fakes import FakeService

SECRET = "sk-test-0123456789abcdef"


class Watch:
    def elapsed_s(self) -> float:
        return 1.5


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    yield from recording(tmp_path, "gemini_stream")


def recording(folder: Path, events: str) -> Iterator[Recorder]:
    with TranscriptWriter(folder) as writer:
        made = Recorder(writer, Redactor({"KEY": SECRET}), make_parser(events), Budget(Limits()))
        made.begin(Watch())
        yield made


def piece(text: str) -> str:
    return json.dumps({"type": "message", "role": "assistant", "content": text, "delta": True})


def whole(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())


def test_a_secret_in_pieces_is_left_out(recorder: Recorder, tmp_path: Path) -> None:
    for text in (f"It is {SECRET[:9]}", SECRET[9:], "."):
        recorder.line("stdout", piece(text))
    recorder.line("stdout", json.dumps({"type": "init", "model": "m"}))
    assert recorder.events[0].text == "It is [KEY]."
    assert SECRET[9:] not in whole(tmp_path) and "4 lines left out" in whole(tmp_path)


def test_harmless_pieces_are_kept_in_their_order(recorder: Recorder, tmp_path: Path) -> None:
    recorder.line("stdout", piece("one "))
    recorder.line("stderr", "a warning")
    recorder.line("stdout", piece("two"))
    recorder.close()
    assert [event.text for event in recorder.events] == ["one two"]
    assert recorder.last_error == "a warning"
    raw = [json.loads(line) for line in (tmp_path / "raw.jsonl").read_text(encoding="utf-8").splitlines()]
    said = [json.loads(line["line"])["content"] for line in raw if line["stream"] == "stdout"]
    assert said == ["one ", "two"]


def test_a_secret_behind_an_escape_is_found_when_the_line_is_read(recorder: Recorder, tmp_path: Path) -> None:
    hidden = "".join(f"\\u{ord(letter):04x}" for letter in SECRET)
    recorder.line("stdout", piece("x").replace("x", hidden))
    recorder.close()
    assert recorder.events[0].text == "[KEY]" and hidden not in whole(tmp_path)


def test_a_kernel_goes_to_the_judge_without_secrets(recorder: Recorder, tmp_path: Path) -> None:
    class Taking(FakeService):
        taken = b""

        def evaluate(self, kernel: bytes, profile: bool = False) -> Feedback:
            self.taken = kernel
            return Feedback("passed", b"{}", Evaluated(1, 0.5, 0.1, Status.PASSED, 1.5, "h"))

    service = Taking()
    RecordedService(service, recorder).evaluate(f"# {SECRET}\n".encode())
    assert service.taken == b"# [KEY]\n"
    (kept,) = read_transcript(tmp_path).evaluations
    assert kept.kernel == b"# [KEY]\n" and recorder.events[0].kind is EventKind.EVALUATION


def test_a_secret_too_short_to_look_for_is_said(tmp_path: Path) -> None:
    with TranscriptWriter(tmp_path) as writer:
        made = Recorder(writer, Redactor({"PIN": "1234"}), make_parser("text"), Budget(Limits()))
        made.begin(Watch())
    assert "PIN is too short" in made.events[0].text
