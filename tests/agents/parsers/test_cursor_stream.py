"""Lines as Cursor's documentation shows them; the program itself was not run."""

from __future__ import annotations

import json

from arena.agents.parsers.cursor_stream import CursorStream
from arena.results.session import Event, EventKind, Tokens

INIT = json.dumps(
    {"type": "system", "subtype": "init", "apiKeySource": "env", "cwd": "/w", "session_id": "s", "model": "Composer"}
)
PROMPT = '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Do it."}]},"session_id":"s"}'
SAID = (
    '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I look."}]},"session_id":"s"}'
)
THOUGHT = '{"type":"thinking","subtype":"delta","text":"Hm","session_id":"s"}'
THOUGHT_ENDS = '{"type":"thinking","subtype":"completed","session_id":"s"}'
DONE = json.dumps({"type": "result", "subtype": "success", "duration_ms": 5234, "is_error": False, "result": "Done."})


def tool(subtype: str, call: dict[str, object]) -> str:
    return json.dumps({"type": "tool_call", "subtype": subtype, "call_id": "toolu_1", "tool_call": call})


def read(parser: CursorStream, *lines: str) -> list[Event]:
    return [event for line in lines for event in parser.feed(line)]


def test_a_session() -> None:
    parser = CursorStream()
    shell = {
        "args": {"command": "./evaluate"},
        "result": {"success": {"exitCode": 1, "stdout": "failed", "stderr": ""}},
    }
    lines = tool("started", {"shellToolCall": {"args": shell["args"]}}), tool("completed", {"shellToolCall": shell})
    events = read(parser, INIT, PROMPT, THOUGHT, THOUGHT, THOUGHT_ENDS, SAID, *lines, DONE)
    assert [(event.kind, event.text) for event in events] == [
        (EventKind.NOTE, "cursor-agent, Composer"),
        (EventKind.REASONING, "HmHm"),
        (EventKind.MESSAGE, "I look."),
        (EventKind.TOOL_CALL, '{"command": "./evaluate"}'),
        (EventKind.TOOL_RESULT, "failed"),
        (EventKind.USAGE, "success"),
    ]
    assert [(event.tool, event.call, event.failed) for event in events[3:5]] == [
        ("shell", "toolu_1", False),
        ("shell", "toolu_1", True),
    ]
    assert (parser.model, parser.error) == ("Composer", "")


def test_an_edit_brings_its_diff_when_it_is_done() -> None:
    done = {"path": "/w/kernel.py", "linesAdded": 1, "diffString": "-a - b\n+a + b", "message": "Wrote contents"}
    (event,) = read(CursorStream(), tool("completed", {"editToolCall": {"args": {}, "result": {"success": done}}}))
    assert (event.tool, event.diff, event.text, event.failed) == ("edit", "-a - b\n+a + b", "Wrote contents", False)


def test_a_tool_that_failed_and_one_without_a_form_of_its_own() -> None:
    parser = CursorStream()
    error = {"error": {"message": "No such file"}}
    (failed,) = read(parser, tool("completed", {"readToolCall": {"args": {"path": "x"}, "result": error}}))
    assert failed.failed and "No such file" in failed.text
    (other,) = read(parser, tool("started", {"function": {"name": "plan", "arguments": '{"steps": 3}'}}))
    assert (other.tool, other.text) == ("plan", '{"steps": 3}')


def test_tokens_where_they_are_reported() -> None:
    usage = {"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 20, "cacheWriteTokens": 3}
    (event,) = read(CursorStream(), json.dumps({**json.loads(DONE), "usage": usage}))
    assert event.tokens == Tokens(input=33, output=5, cached=20)


def test_what_went_wrong_in_the_end() -> None:
    parser = CursorStream()
    read(parser, json.dumps({**json.loads(DONE), "is_error": True, "result": "usage limit reached"}))
    assert parser.error == "usage limit reached"


def test_a_line_that_cannot_be_read_is_a_note() -> None:
    lines = ["Error: not logged in", '{"type":"tool_call"}', "[]", '{"type":"interaction_query"}']
    events = read(CursorStream(), *lines, "")
    assert [event.kind for event in events] == [EventKind.NOTE] * len(lines)
    assert events[0].text == lines[0]
