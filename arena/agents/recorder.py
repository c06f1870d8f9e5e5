"""One session as it goes on disk: lines and evaluations come in, without secrets they go into the transcript."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, Protocol

from arena.agents.base import EvaluationService, Feedback
from arena.agents.budget import Budget
from arena.agents.parsers import Parser
from arena.agents.redaction import Redactor
from arena.results.session import Evaluated, Event, EventKind
from arena.results.transcripts import TranscriptWriter

_DETAIL_CHARACTERS = 500
_ERROR_LINES = 20
_MOST_HELD = 100_000


class _TranscriptLine(NamedTuple):
    text: str
    at_s: float
    stream: str


class RecordingWatch(Protocol):
    """Knows how long a session has gone on."""

    def elapsed_s(self) -> float:
        """Seconds since the start, pauses included."""


class Recorder:
    """Thread-safe: the agent's output and its evaluations come from different threads."""

    def __init__(self, writer: TranscriptWriter, redactor: Redactor, parser: Parser, budget: Budget) -> None:
        self._writer, self._redactor, self._parser, self.budget = writer, redactor, parser, budget
        self._lock = threading.RLock()
        self._watch: RecordingWatch | None = None
        self.events: list[Event] = []
        self.evaluations: list[Evaluated] = []
        self.refused = 0
        self._errors: deque[str] = deque(maxlen=_ERROR_LINES)
        self._held: list[_TranscriptLine] = []

    def begin(self, watch: RecordingWatch) -> None:
        """From here on events have times."""
        self._watch = watch
        for name in self._redactor.too_short:
            self.note(f"{name} is too short to be looked for in texts: it may stand in this transcript", failed=True)

    @property
    def model(self) -> str:
        """The model that the program named."""
        return self.clean(self._parser.model)

    @property
    def error(self) -> str:
        """What the program says went wrong."""
        return self.clean(self._parser.error)

    @property
    def last_error(self) -> str:
        """The last line on its standard error."""
        return self._errors[-1].strip()[:_DETAIL_CHARACTERS] if self._errors else ""

    @property
    def error_lines(self) -> str:
        """The last lines on its standard error."""
        return "\n".join(line.rstrip()[:_DETAIL_CHARACTERS] for line in self._errors)

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        return self._redactor.clean(text)

    def clean_kernel(self, kernel: bytes | None) -> bytes | None:
        """A kernel without secrets: what the judge gets, and what is kept."""
        return None if kernel is None else self._redactor.clean_bytes(kernel)

    def line(self, stream: str, text: str) -> None:
        """One line that the program printed; only its standard output is read for events."""
        with self._lock:
            line = _TranscriptLine(self.clean(text), self._now(), stream)
            if stream == "stderr":
                if line.text.strip():
                    self._errors.append(line.text)
                self._writer.raw(*line)
                return
            self._held.append(line)
            self._take(self._parser.feed(line.text))
            if len(self._held) > _MOST_HELD:
                self._release("too many pieces of one message")

    def close(self) -> None:
        """The program has ended: what it left unfinished is written down too."""
        with self._lock:
            self._take(self._parser.close())
            self._release("")

    def _take(self, events: Iterable[Event]) -> None:
        """Write events, and the lines they came in, which wait for that: only together do pieces show a secret."""
        seen = list(events)
        whole = [self._redactor.clean_event(event) for event in seen]
        for event in whole:
            self._event(event)
        if whole:
            self._release("together they hold a credential" if whole != seen else "")

    def _release(self, fault: str) -> None:
        if fault and self._held:
            first = self._held[0]
            self._writer.raw(f"[{len(self._held)} lines left out: {fault}]", first.at_s, first.stream)
        else:
            for line in self._held:
                self._writer.raw(*line)
        self._held.clear()

    def note(self, text: str, *, failed: bool = False) -> None:
        """Something that the harness has to say."""
        with self._lock:
            self._event(Event(EventKind.NOTE, self.clean(text), failed=failed))

    def evaluation(self, kernel: bytes, answer: Feedback) -> None:
        """One call of `./evaluate`, and its answer."""
        with self._lock:
            evaluated = answer.evaluated
            if evaluated is None:
                self.refused += 1
                self._event(Event(EventKind.EVALUATION, answer.text, failed=True))
                return
            self.evaluations.append(evaluated)
            self._writer.evaluation(evaluated, kernel, answer.text, answer.content)
            failed = evaluated.speedup is None
            self._event(Event(EventKind.EVALUATION, answer.text, failed=failed, number=evaluated.number))

    def _event(self, event: Event) -> None:
        stamped = replace(event, at_s=self._now())
        self.events.append(stamped)
        self.budget.add(stamped)
        self._writer.event(stamped)

    def _now(self) -> float:
        return self._watch.elapsed_s() if self._watch is not None else 0.0


class RecordedService:
    """What `./evaluate` reaches: the trial's evaluation service, with every call in the transcript."""

    def __init__(self, service: EvaluationService, recorder: Recorder) -> None:
        self._service, self._recorder = service, recorder

    def evaluate(self, kernel: bytes, profile: bool = False) -> Feedback:
        """Evaluate and write down."""
        cleaned = self._recorder.clean_kernel(kernel) or b""
        answer = self._service.evaluate(cleaned, profile)
        self._recorder.evaluation(cleaned, answer)
        return answer
