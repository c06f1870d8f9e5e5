"""Transcripts on disk: everything an agent printed and did during a trial, kept as it comes.

runs/<run>/transcripts/<agent>/<task with dots>.<attempt>/
    raw.jsonl               the lines of the agent's program, one object each: at_s, stream, line
    events.jsonl            the same in the common form of `arena.results.session.Event`
    evaluations/<number>/   evaluated.json, the kernel, feedback.txt, feedback.json

Every line is flushed when it is written: a run that is killed leaves what was there.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TypeVar

import msgspec

from arena.errors import RecordError
from arena.results.session import Evaluated, Event, Tokens

T = TypeVar("T")
FOLDER = "transcripts"
RAW, EVENTS, EVALUATIONS = "raw.jsonl", "events.jsonl", "evaluations"
LINE_LIMIT = 256 << 10
"""Characters that are kept of one raw line, and of each text of an event."""
FILE_LIMIT = 64 << 20
"""Bytes that `raw.jsonl` and `events.jsonl` may grow to, each."""
_EXACT = 2**53
_DIGITS = 18


@dataclass(frozen=True)
class RawLine:
    """One line of the agent's program. `dropped`: characters beyond the limit on a line."""

    at_s: float
    stream: str
    line: str
    dropped: int = 0


@dataclass(frozen=True)
class KeptEvaluation:
    """One evaluation with the kernel that was handed in and what the agent was told."""

    evaluated: Evaluated
    kernel: bytes
    kernel_file: str
    text: str
    content: bytes


@dataclass(frozen=True)
class Transcript:
    """A transcript read back from `folder`."""

    folder: Path
    events: tuple[Event, ...]
    evaluations: tuple[KeptEvaluation, ...]


def transcript_path(run_folder: Path, agent: str, task: str, attempt: int) -> Path:
    """Where the transcript of one trial lives."""
    return run_folder / FOLDER / agent / f"{task.replace('/', '.')}.{attempt}"


class TranscriptWriter:
    """Writes a transcript; may be used from several threads. What an earlier trial left in the folder is removed."""

    def __init__(self, folder: Path, kernel_file: str = "kernel.py") -> None:
        """`kernel_file` is what the kernels of evaluations are called."""
        self.folder = folder
        self._kernel_file = kernel_file
        self._lock = Lock()
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / EVALUATIONS).exists():
            shutil.rmtree(folder / EVALUATIONS)
        self._raw = _Lines(folder / RAW)
        self._events = _Lines(folder / EVENTS)

    def __enter__(self) -> TranscriptWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def raw(self, line: str, at_s: float, stream: str = "stdout") -> None:
        """Keep one line of the agent's program; what is longer than `LINE_LIMIT` is cut, and the line says so."""
        text = _text(line.rstrip("\n"))
        kept = RawLine(_number(at_s), stream, text[:LINE_LIMIT], max(0, len(text) - LINE_LIMIT))
        with self._lock:
            self._raw.write(msgspec.json.encode(kept))

    def event(self, event: Event) -> None:
        """Keep one event."""
        data = msgspec.json.encode(_storable(event))
        with self._lock:
            self._events.write(data)

    def evaluation(self, evaluated: Evaluated, kernel: bytes, text: str, content: bytes) -> None:
        """Keep one evaluation with its feedback as text and as JSON; a run killed meanwhile keeps nothing of it."""
        place = self.folder / EVALUATIONS / str(evaluated.number)
        fresh = place.with_name(f".{evaluated.number}")
        with self._lock:
            for stale in (fresh, place):
                shutil.rmtree(stale, ignore_errors=True)
            fresh.mkdir(parents=True)
            (fresh / self._kernel_file).write_bytes(kernel)
            (fresh / "feedback.txt").write_text(_text(text), encoding="utf-8")
            (fresh / "feedback.json").write_bytes(content)
            (fresh / "evaluated.json").write_bytes(msgspec.json.encode(evaluated))
            fresh.rename(place)

    def close(self) -> None:
        """End the files; nothing may be written afterwards."""
        with self._lock:
            self._raw.close()
            self._events.close()


def read_transcript(folder: Path) -> Transcript:
    """Read a transcript; raises `RecordError` where there is none. A last line that was cut off is left out."""
    if not (folder / EVENTS).is_file():
        raise RecordError(f"{folder}: no transcript here (no {EVENTS}); a run of a coding agent writes one")
    numbered = (place for place in (folder / EVALUATIONS).glob("[0-9]*") if place.name.isdecimal())
    places = sorted(numbered, key=lambda place: int(place.name[:_DIGITS]))
    return Transcript(folder, tuple(_lines(folder / EVENTS, Event)), tuple(_evaluation(place) for place in places))


def read_raw(folder: Path) -> Iterator[RawLine]:
    """The lines of the agent's program, in order."""
    return _lines(folder / RAW, RawLine)


def find_transcripts(run_folder: Path) -> list[Path]:
    """The folders of all transcripts of a run, by agent and task."""
    return sorted(path.parent for path in (run_folder / FOLDER).glob(f"*/*/{EVENTS}"))


class _Lines:
    """A file of JSON lines that stops growing at `FILE_LIMIT`; its last line then says so."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._full = _FULL[path.name]
        self._room = FILE_LIMIT - len(self._full) - 1

    def write(self, line: bytes) -> None:
        if self._room < 0:
            return
        self._room -= len(line) + 1
        self._file.write((line if self._room >= 0 else self._full) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _full_note(text: str) -> dict[str, bytes]:
    raw = RawLine(0.0, "harness", text)
    return {
        RAW: msgspec.json.encode(raw),
        EVENTS: msgspec.json.encode({"kind": "note", "text": text, "failed": True}),
    }


_FULL = _full_note(f"the file has reached {FILE_LIMIT >> 20} MiB: what followed was dropped")


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Every line of a file; a last line without an end is of a run that was killed, and left out."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield msgspec.json.decode(line, type=kind)
            except msgspec.MsgspecError as problem:
                raise RecordError(f"{path}:{number}: unreadable ({problem}); run the trial again") from problem


def _evaluation(place: Path) -> KeptEvaluation:
    try:
        kernel = next(path for path in sorted(place.iterdir()) if path.stem == "kernel")
        return KeptEvaluation(
            msgspec.json.decode((place / "evaluated.json").read_bytes(), type=Evaluated),
            kernel.read_bytes(),
            kernel.name,
            (place / "feedback.txt").read_text(encoding="utf-8"),
            (place / "feedback.json").read_bytes(),
        )
    except (OSError, StopIteration, msgspec.MsgspecError) as problem:
        raise RecordError(f"{place}: unreadable evaluation ({problem}); run the trial again") from problem


def _storable(event: Event) -> Event:
    """The event as JSON can hold it: whatever an agent's program says of itself, it must not end the trial."""
    tokens = event.tokens
    return replace(
        event,
        text=_cut(event.text),
        diff=_cut(event.diff),
        tool=_cut(event.tool),
        call=_cut(event.call),
        parent=_cut(event.parent),
        at_s=_number(event.at_s),
        cost_usd=_number(event.cost_usd),
        number=_count(event.number),
        tokens=Tokens(_count(tokens.input), _count(tokens.output), _count(tokens.cached)),
    )


def _cut(text: str) -> str:
    text = _text(text)
    over = len(text) - LINE_LIMIT
    return text if over <= 0 else f"{text[:LINE_LIMIT]}\n[{over} more characters were dropped]"


def _text(text: str) -> str:
    """Text without lone surrogates, which a JSON string may name and UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _number(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _count(value: int) -> int:
    return max(-_EXACT, min(_EXACT, value))
