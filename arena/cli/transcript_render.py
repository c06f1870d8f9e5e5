"""A transcript as lines for a terminal. Texts are printed plain: what an agent wrote moves no cursor."""

from __future__ import annotations

from collections.abc import Iterator

from rich.padding import Padding
from rich.text import Text

from arena.reports import formats
from arena.reports.plain import cut, plain
from arena.reports.rows import TrialRow
from arena.reports.session_views import session_facts, spelled
from arena.reports.transcript_views import EvaluationView, EventView, evaluation_views, event_views
from arena.results.outcome import ending
from arena.results.session import Flag
from arena.results.transcripts import Transcript

SHORT = 600
"""Characters that are shown of a text unless all is asked for."""
_WHOLE = 1 << 40
_STYLES = {
    "message": "bold",
    "reasoning": "dim italic",
    "tool_call": "cyan",
    "tool_result": "dim",
    "evaluation": "magenta",
    "note": "yellow",
}
_DIFF = {"add": "green", "del": "red", "at": "dim"}


def shown(row: TrialRow, transcript: Transcript, *, full: bool) -> Iterator[Text | Padding]:
    """The head, the events in order, subagents indented, the evaluations and the verdict."""
    limit = _WHOLE if full else SHORT
    flags = row.session.flags if row.session else ()
    yield from _head(row)
    yield from _flags(flags)
    for event in event_views(transcript, flags, limit):
        yield from _event(event, 0)
    for evaluation in evaluation_views(transcript, limit):
        yield _evaluation(evaluation)
    yield from _verdict(row)


def _head(row: TrialRow) -> Iterator[Text]:
    yield Text(f"{row.agent} on {row.task}, attempt {row.attempt} ({row.run})", style="bold")
    for name, fact in session_facts(row.session) if row.session else ():
        yield Text.assemble((f"{name:>12}  ", "dim"), plain(fact))


def _flags(flags: tuple[Flag, ...]) -> Iterator[Text]:
    for flag in flags:
        line = f"flag: event {flag.event} reaches for {flag.reaches_for}: {cut(plain(flag.excerpt), 200).head}"
        yield Text(line, style="red")


def _event(event: EventView, depth: int) -> Iterator[Text | Padding]:
    if event.skipped:
        yield Text(f"… {event.skipped} events are not shown; `--json` prints all", style="yellow")
    yield _indented(_line(event), depth)
    text = event.text.head
    if event.text.left_out:
        text += f"\n… {event.text.left_out} characters left out; `--full` shows them …\n{event.text.tail}"
    if text:
        yield _indented(Text(text, style=_STYLES.get(event.kind, "")), depth + 1)
    for line in event.diff:
        yield _indented(Text(line.text, style=_DIFF.get(line.tone, "")), depth + 1)
    for child in event.children:
        yield from _event(child, depth + 1)


def _line(event: EventView) -> Text:
    line = Text.assemble(
        (f"{event.at:>7} ", "dim"), (f"{event.index} ", "dim"), (event.title, _STYLES.get(event.kind, ""))
    )
    for part, style in ((event.tool, "bold cyan"), (event.took, "dim"), (event.used, "dim")):
        if part:
            line.append(f" {part}", style=style)
    if event.failed:
        line.append(" failed", style="red")
    for flag in event.flags:
        line.append(f" reaches for {flag}", style="bold red")
    return line


def _evaluation(one: EvaluationView) -> Text:
    line = Text(f"evaluation {one.number} at {one.minute}: ")
    line.append(one.status, style="green" if one.tone == "good" else "red")
    return line.append(f" {one.speedup}{' best' if one.best else ''}")


def _verdict(row: TrialRow) -> Iterator[Text]:
    ended = ending(row.outcome, row.status)
    line = f"outcome: {ended}, seen {formats.speedup(row.speedup)}, held-out {formats.speedup(row.heldout_speedup)}"
    yield Text(line, style="bold")
    if row.emulated:
        yield Text(f"Latencies are {formats.EMULATED}.", style="yellow")
    for case in row.cases:
        result = case.result
        tail = f": {plain(result.detail)}" if result.detail else ""
        yield Text(
            f"  {result.split} {result.label}: {spelled(result.candidate)} {formats.speedup(result.speedup)}{tail}"
        )


def _indented(text: Text, depth: int) -> Padding:
    return Padding(text, (0, 0, 0, 4 * depth), expand=False)
