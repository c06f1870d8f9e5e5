"""`arena explain`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.markup import escape

from arena.cli.console import examples, out, print_json
from arena.errors import UsageError
from arena.results.messages import ITEMS, MEANINGS, MESSAGES, Message, by_section, item_of, leading_to
from arena.results.verdict import Status

EXAMPLES = examples(
    "arena explain                       # every message, by stage",
    "arena explain prepares_too_long     # one message",
    "arena explain timing_mismatch       # the messages that lead to a status",
    "arena explain held-out kinds        # an item of `arena tasks check`",
    "arena explain prepares_too_long --json",
)
_NEAREST = 3


def explain(
    code: Annotated[
        list[str] | None,
        typer.Argument(help="Code of a message, a status, or an item of `arena tasks check`; default: all messages."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The messages as JSON.")] = False,
) -> None:
    """Explain a message of the judge or of `arena tasks check`: what happened, why it matters, what to do next."""
    wanted = " ".join(code or ()).strip("[]() ")
    chosen = _chosen(wanted)
    if as_json:
        print_json({name: _as_json(entry) for name, entry in chosen.items()})
    elif wanted in MESSAGES:
        _show(wanted, MESSAGES[wanted])
    elif wanted in {*Status}:
        out.print(f"[bold]{wanted}[/bold]: {escape(MEANINGS[Status(wanted)])}", highlight=False, soft_wrap=True)
        _list(chosen, f"Messages that lead to {wanted}")
    elif wanted:
        for name, entry in chosen.items():
            _show(name, entry)
    else:
        for section, entries in by_section():
            _list(entries, str(section).capitalize())
        out.print("Explain one with `arena explain CODE`.", highlight=False)


def _chosen(wanted: str) -> Mapping[str, Message]:
    """Return the messages that are asked for. Raises `UsageError` for what is no code, no status and no item."""
    if not wanted:
        return MESSAGES
    if wanted in MESSAGES:
        return {wanted: MESSAGES[wanted]}
    if wanted in {*Status}:
        return leading_to(Status(wanted))
    if item := item_of(wanted):
        return {name: MESSAGES[name] for name in ITEMS[item]}
    known = [*MESSAGES, *Status, *ITEMS]
    parts = [name for name in known if wanted and wanted in name]
    nearest = (difflib.get_close_matches(wanted, known, _NEAREST, 0.5) or parts)[:_NEAREST]
    advice = f"did you mean {', '.join(nearest)}?" if nearest else "`arena explain` lists all"
    raise UsageError(f"no message, status or item is called {wanted!r}; {advice}")


def _list(entries: Mapping[str, Message], heading: str) -> None:
    """Print a line for each message below a heading."""
    out.print(f"[bold]{escape(heading)}[/bold]", highlight=False)
    if not entries:
        out.print("  none", highlight=False)
    width = max(map(len, entries), default=0)
    for code, entry in entries.items():
        out.print(f"  {code:<{width}}  {escape(entry.title)}", highlight=False, soft_wrap=True)
    out.print()


def _show(code: str, entry: Message) -> None:
    """Print one message in full."""
    statuses = ", ".join(entry.statuses)
    out.print(f"[bold]{code}[/bold]: {escape(entry.title)}", highlight=False, soft_wrap=True)
    for name, text in (
        ("stage", str(entry.section)),
        ("status", statuses),
        ("message", entry.template),
        ("why", entry.why),
        ("next", entry.todo),
    ):
        if text:
            out.print(f"  {name:<8} {escape(text)}", highlight=False, soft_wrap=True)


def _as_json(entry: Message) -> dict[str, object]:
    texts = {"title": entry.title, "text": entry.template, "why": entry.why, "next": entry.todo}
    return {"stage": str(entry.section), "statuses": [str(status) for status in entry.statuses], **texts}
