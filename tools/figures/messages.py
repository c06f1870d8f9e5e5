"""The page of messages, docs/contribute/messages.md, from the catalogue. Used by `tools/claims.py`."""

from __future__ import annotations

from collections.abc import Iterator

from arena.results.messages import Message, MessageSection, by_section

SOURCE = "arena/results/messages.py"
PAGE = "docs/contribute/messages.md"
_HEAD = (
    "# Messages of the judge",
    "",
    "For authors of candidates and tasks.",
    "",
    "`arena explain CODE` says more.",
)
_NOTES = {
    MessageSection.TARGETS: "These change no verdict.",
    MessageSection.CHECK: "[Check failures](check-failures.md) lists the items.",
    MessageSection.HARNESS: "These say nothing about the candidate: the status is `harness_error`.",
}


def page() -> str:
    """Return the text of the page."""
    return "\n".join([*_HEAD, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    for section, entries in by_section():
        name = str(section)
        yield from ("", f"## {f'`{name}`' if section is MessageSection.CHECK else name[0].upper() + name[1:]}", "")
        if section in _NOTES:
            yield from (_NOTES[section], "")
        with_status = section not in _NOTES
        yield f"| code |{' status |' if with_status else ''} what happened | what to do |"
        yield "| --- |" + " --- |" * (2 + with_status)
        yield from (_row(code, entry, with_status=with_status) for code, entry in entries.items())


def _row(code: str, entry: Message, *, with_status: bool) -> str:
    status = f" {', '.join(f'`{one}`' for one in entry.statuses)} |" if with_status else ""
    return f"| `{code}` |{status} {entry.title} | {entry.todo} |"
