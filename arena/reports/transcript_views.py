"""Events of a transcript as a page shows them: nested, cut where long, with badges. All text is made plain here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arena.reports import formats
from arena.reports.plain import Cut, arguments, cut, first_line, plain
from arena.reports.session_views import spelled
from arena.results.session import Event, EventKind, Flag
from arena.results.transcripts import KeptEvaluation, Transcript
from arena.results.verdict import Status

MOST_EVENTS = 6000
"""Events on a page; of more, the first and the last half, and all that are flagged."""
DEEPEST = 5
"""Nesting of subagents that is shown; what is deeper is shown at this depth."""
_LONG_LINES, _LONG_TEXT = 12, 900
_TITLES = {
    EventKind.MESSAGE: "message",
    EventKind.REASONING: "reasoning",
    EventKind.TOOL_CALL: "tool call",
    EventKind.TOOL_RESULT: "result",
    EventKind.EVALUATION: "evaluation",
    EventKind.USAGE: "usage",
    EventKind.NOTE: "note",
}


@dataclass(frozen=True)
class DiffLine:
    """One line of a diff; `tone` is `add`, `del`, `at` (where it is), or empty."""

    tone: str
    text: str


@dataclass
class EventView:
    """One event. `skipped`: events left out before it; `took`: how long a tool took; `number`: its evaluation."""

    index: int
    kind: str
    title: str
    at: str
    tool: str
    took: str
    used: str
    failed: bool
    collapsed: bool
    summary: str
    text: Cut
    diff: tuple[DiffLine, ...]
    flags: tuple[str, ...]
    skipped: int
    evaluation: EvaluationView | None = None
    children: list[EventView] = field(default_factory=list)


@dataclass(frozen=True)
class EvaluationView:
    """One call of `./evaluate`."""

    number: int
    minute: str
    seconds: str
    status: str
    tone: str
    speedup: str
    best: bool
    kernel: Cut
    kernel_file: str
    text: Cut


def event_views(transcript: Transcript, flags: Sequence[Flag], limit: int) -> list[EventView]:
    """The events of the agent itself, those of subagents inside the calls that started them.

    `limit`: characters that are shown of one text.
    """
    events = transcript.events
    flagged: dict[int, list[str]] = {}
    for flag in flags:
        flagged.setdefault(flag.event, []).append(flag.reaches_for)
    evaluations = {view.number: view for view in evaluation_views(transcript, limit)}
    took = _took(events)
    top: list[EventView] = []
    calls: dict[str, tuple[EventView, int]] = {}  # an event's parent is a call before it, so there is no circle
    before = -1
    for index in shown_events(len(events), flagged):
        event = events[index]
        view = _view(index, event, limit, took.get(index), tuple(flagged.get(index, ())), index - before - 1)
        view.evaluation = evaluations.get(event.number) if event.kind is EventKind.EVALUATION else None
        before = index
        parent = calls.get(event.parent) if event.parent else None
        depth = 0 if parent is None else parent[1] + 1
        (top if parent is None else parent[0].children).append(view)
        if event.kind is EventKind.TOOL_CALL and event.call:
            calls[event.call] = (view, depth) if depth < DEEPEST or parent is None else parent
    return top


def evaluation_views(transcript: Transcript, limit: int) -> list[EvaluationView]:
    """Every evaluation with its kernel and feedback."""
    known = [kept.evaluated.speedup for kept in transcript.evaluations if kept.evaluated.speedup is not None]
    return [_evaluation(kept, max(known, default=None), limit) for kept in transcript.evaluations]


def shown_events(count: int, flagged: Mapping[int, object]) -> list[int]:
    """Indices of the events that a page shows."""
    if count <= MOST_EVENTS:
        return list(range(count))
    half = MOST_EVENTS // 2
    kept = {*range(half), *range(count - half, count), *(index for index in flagged if 0 <= index < count)}
    return sorted(kept)


def diff_lines(text: str) -> list[DiffLine]:
    """The lines of a unified diff by what they are."""
    return [DiffLine(_tone(line), line) for line in text.split("\n")]


def _tone(line: str) -> str:
    if line.startswith(("+++", "---", "@@", "diff ", "***")):
        return "at"
    return {"+": "add", "-": "del"}.get(line[:1], "")


def _view(index: int, event: Event, limit: int, took: float | None, flags: tuple[str, ...], skipped: int) -> EventView:
    text = plain(event.text).strip("\n")
    if event.kind is EventKind.TOOL_CALL:
        text = arguments(text)
    long = text.count("\n") >= _LONG_LINES or len(text) > _LONG_TEXT
    always = event.kind is EventKind.REASONING or (event.kind is EventKind.TOOL_CALL and bool(event.diff))
    folds = event.kind in (EventKind.TOOL_RESULT, EventKind.TOOL_CALL, EventKind.NOTE, EventKind.EVALUATION)
    return EventView(
        index=index,
        kind=str(event.kind),
        title=_TITLES[event.kind],
        at=formats.clock(event.at_s),
        tool=plain(event.tool),
        took="" if took is None else f"{took:.1f} s",
        used=_used(event),
        failed=event.failed,
        collapsed=bool(text) and (always or (folds and long)),
        summary=first_line(text),
        text=cut(text, limit),
        diff=_diff(event.diff, limit),
        flags=flags,
        skipped=skipped,
    )


def _diff(text: str, limit: int) -> tuple[DiffLine, ...]:
    if not text:
        return ()
    shown = cut(plain(text).strip("\n"), limit)
    lines = diff_lines(shown.head)
    if shown.left_out:
        lines += [DiffLine("at", f"… {shown.left_out} characters left out …"), *diff_lines(shown.tail)]
    return tuple(lines)


def _used(event: Event) -> str:
    tokens, parts = event.tokens, []
    if tokens.total:
        parts.append(f"{formats.count(tokens.input)} in, {formats.count(tokens.output)} out")
    if event.cost_usd:
        parts.append(formats.dollars(event.cost_usd))
    return " · ".join(parts)


def _took(events: Sequence[Event]) -> dict[int, float]:
    """Seconds from each tool call to its result, by the call's index."""
    called: dict[str, int] = {}
    found = {}
    for index, event in enumerate(events):
        if event.kind is EventKind.TOOL_CALL and event.call:
            called[event.call] = index
        elif event.kind is EventKind.TOOL_RESULT and event.call in called:
            start = called.pop(event.call)
            found[start] = max(0.0, event.at_s - events[start].at_s)
    return found


def _evaluation(kept: KeptEvaluation, best: float | None, limit: int) -> EvaluationView:
    evaluated = kept.evaluated
    return EvaluationView(
        number=evaluated.number,
        minute=formats.clock(evaluated.at_s),
        seconds=f"{evaluated.seconds:.1f} s",
        status="right on seen cases" if evaluated.status is Status.PASSED else spelled(evaluated.status),
        tone="good" if evaluated.status is Status.PASSED else "bad",
        speedup=formats.NONE if evaluated.speedup is None else f"{evaluated.speedup:.2f}×",
        best=best is not None and evaluated.speedup == best,
        kernel=cut(plain(kept.kernel.decode("utf-8", "replace")), limit),
        kernel_file=kept.kernel_file,
        text=cut(plain(kept.text).strip("\n"), limit),
    )
