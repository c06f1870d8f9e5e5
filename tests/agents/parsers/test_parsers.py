"""The table of formats, programs that print plain text, and edits as diffs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import arena
from arena.agents.parsers import PARSERS, make_parser
from arena.agents.parsers.edits import replaced, unified
from arena.errors import UsageError
from arena.results.session import Event, EventKind

HOSTILE = ("{", "null", "[1]", '"type"', '{"type": 3}', "{}", "[" * 100_000, '{"type": "result"}', "\x00\ufffd")


def test_every_format_that_a_definition_may_name_has_a_parser() -> None:
    schema = json.loads((Path(arena.__file__).parent / "task" / "schemas" / "agent.json").read_text(encoding="utf-8"))
    assert set(PARSERS) == set(schema["properties"]["events"]["enum"])


def test_an_unknown_format_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown event format 'morse'; expected one of: text, claude_stream"):
        make_parser("morse")


@pytest.mark.parametrize("events", ["claude_stream", "codex_json"])
@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_what_cannot_be_read_is_kept_as_a_note(events: str, line: str) -> None:
    parser = make_parser(events)
    (event,) = parser.feed(f"{line}\n")
    assert event.kind is EventKind.NOTE and line in event.text
    assert not list(parser.feed("\n"))


def test_text_is_a_message_a_line() -> None:
    parser = make_parser("text")
    assert list(parser.feed("  I look at it.\r\n")) == [Event(EventKind.MESSAGE, "  I look at it.")]
    assert not list(parser.feed(" \n"))
    assert (parser.model, parser.error) == ("", "")


def test_edits_are_unified_diffs() -> None:
    assert unified("/w/k.py", "a\nb\n", "a\nc\n") == "--- a/w/k.py\n+++ b/w/k.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert unified("k.py", None, "a") == "--- /dev/null\n+++ b/k.py\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"
    assert unified("k.py", "a\x0cb\n", "a\x0cb\n") == ""
    assert unified("k.py", "a\x0cb\n", "a\x0cc\n").splitlines(keepends=False)[-1].endswith("c")
    assert (replaced("a a", "a", "b"), replaced("a a", "a", "b", everywhere=True)) == ("b a", "b b")
