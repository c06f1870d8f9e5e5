"""Lines that Gemini CLI 0.61.0 printed."""

from __future__ import annotations

import json

from arena.agents.parsers.gemini_stream import GeminiStream
from arena.results.session import Event, EventKind, Tokens

INIT = '{"type":"init","timestamp":"2026-11-21T15:13:48.368Z","session_id":"dad2db69","model":"auto"}'
PROMPT = '{"type":"message","timestamp":"2026-11-21T15:13:48.370Z","role":"user","content":"Fix the kernel.\\n"}'
EDIT = (
    '{"type":"tool_use","timestamp":"2026-11-21T15:13:48.535Z","tool_name":"replace","tool_id":"replace_0",'
    '"parameters":{"file_path":"/w/kernel.py","instruction":"fix it","old_string":"a - b","new_string":"a + b"}}'
)
EDITED = '{"type":"tool_result","timestamp":"2026-11-21T15:13:48.582Z","tool_id":"replace_0","status":"success"}'
NOT_EDITED = (
    '{"type":"tool_result","timestamp":"2026-11-21T15:43:33.690Z","tool_id":"replace_1","status":"error",'
    '"output":"Error: File not found. Cannot apply edit.","error":{"type":"file_not_found","message":"File not found"}}'
)
RESULT = (
    '{"type":"result","timestamp":"2026-11-21T15:13:48.746Z","status":"success","stats":{"total_tokens":353,'
    '"input_tokens":307,"output_tokens":31,"cached":60,"input":247,"duration_ms":378,"tool_calls":2,"models":{'
    '"gemini-3.5-flash-lite":{"total_tokens":8,"input_tokens":7,"output_tokens":1,"cached":0,"input":7},'
    '"gemini-x":{"total_tokens":345,"input_tokens":300,"output_tokens":30,"cached":60,"input":240}}}}'
)
REFUSED = (
    '{"type":"result","timestamp":"2026-11-21T15:42:51.498Z","status":"error","error":{"type":"unknown",'
    '"message":"[API Error: this key is not known]"},"stats":{"total_tokens":0,"input_tokens":0,"output_tokens":0,'
    '"cached":0,"input":0,"duration_ms":0,"tool_calls":0,"models":{}}}'
)


def said(text: str) -> str:
    return json.dumps({"type": "message", "role": "assistant", "content": text, "delta": True})


def read(parser: GeminiStream, *lines: str) -> list[Event]:
    return [event for line in lines for event in parser.feed(line)]


def test_pieces_of_a_message_become_one_when_something_else_comes() -> None:
    events = read(GeminiStream(), INIT, PROMPT, said("I ed"), said("it."), EDIT, EDITED, said("Done."), RESULT)
    assert [event.kind for event in events] == [
        EventKind.NOTE,
        EventKind.MESSAGE,
        EventKind.TOOL_CALL,
        EventKind.TOOL_RESULT,
        EventKind.MESSAGE,
        EventKind.USAGE,
    ]
    assert [event.text for event in events if event.kind is EventKind.MESSAGE] == ["I edit.", "Done."]


def test_an_edit_is_a_diff_and_its_result_belongs_to_it() -> None:
    call, result = read(GeminiStream(), EDIT, EDITED)
    assert (call.tool, call.call, result.call, result.failed) == ("replace", "replace_0", "replace_0", False)
    assert "-a - b" in call.diff and "+a + b" in call.diff
    assert json.loads(call.text)["instruction"] == "fix it"


def test_a_tool_that_failed() -> None:
    (event,) = read(GeminiStream(), NOT_EDITED)
    assert event.failed and "File not found" in event.text


def test_tokens_are_those_of_all_models_and_thoughts_are_output() -> None:
    parser = GeminiStream()
    *_, last = read(parser, INIT, RESULT)
    assert last.tokens == Tokens(input=307, output=46, cached=60)
    assert (parser.model, parser.error) == ("gemini-x", "")


def test_a_named_model_is_kept() -> None:
    parser = GeminiStream()
    read(parser, INIT.replace("auto", "gemini-2.5-pro"), RESULT)
    assert parser.model == "gemini-2.5-pro"


def test_what_went_wrong_in_the_end() -> None:
    parser = GeminiStream()
    (event,) = read(parser, REFUSED)
    assert event.failed and parser.error == "[API Error: this key is not known]"


def test_an_error_that_was_got_over_is_none() -> None:
    parser = GeminiStream()
    (event,) = read(parser, '{"type":"error","severity":"error","message":"quota exceeded"}')
    assert event.failed and parser.error == "quota exceeded"
    read(parser, RESULT)
    assert parser.error == ""


def test_a_line_that_cannot_be_read_is_a_note_and_loses_nothing() -> None:
    events = read(GeminiStream(), said("Half"), "YOLO mode is enabled.", "", '{"type":"tool_use"}', "[1]", "null")
    assert [(event.kind, event.text) for event in events] == [
        (EventKind.MESSAGE, "Half"),
        (EventKind.NOTE, "YOLO mode is enabled."),
        (EventKind.NOTE, '{"type":"tool_use"}'),
        (EventKind.NOTE, "[1]"),
        (EventKind.NOTE, "null"),
    ]
