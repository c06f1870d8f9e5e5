"""Lines that OpenCode 1.18.33 printed."""

from __future__ import annotations

import json

import pytest

from arena.agents.parsers.opencode_json import OpencodeJson
from arena.results.session import Event, EventKind, Tokens

DIFF = "--- /w/kernel.py\n+++ /w/kernel.py\n@@ -1,2 +1,2 @@\n def f(a, b):\n-    return a - b\n+    return a + b\n"
START = '{"type":"step_start","timestamp":1795274059182,"sessionID":"ses_1","part":{"id":"prt_1","type":"step-start"}}'
TEXT = (
    '{"type":"text","timestamp":1795274059183,"sessionID":"ses_1","part":{"id":"prt_2","messageID":"msg_1",'
    '"type":"text","text":"Step 0.","time":{"start":1795274059073,"end":1795274059105}}}'
)
THOUGHT = TEXT.replace('"text","timestamp"', '"reasoning","timestamp"').replace("Step 0.", "Hm.")
EDIT = json.dumps(
    {
        "type": "tool_use",
        "part": {
            "type": "tool",
            "tool": "edit",
            "callID": "call_0",
            "state": {
                "status": "completed",
                "input": {"filePath": "/w/kernel.py", "oldString": "a - b", "newString": "a + b"},
                "output": "Edit applied successfully.",
                "metadata": {"diagnostics": {}, "diff": DIFF, "truncated": False},
                "title": "kernel.py",
            },
        },
    }
)
NOT_EDITED = (
    '{"type":"tool_use","part":{"type":"tool","tool":"edit","callID":"call_1","state":{"status":"error","input":'
    '{"filePath":"/nowhere/x","oldString":"a","newString":"b"},"error":"File /nowhere/x not found"}}}'
)
EXIT_3 = (
    '{"type":"tool_use","part":{"type":"tool","tool":"bash","callID":"call_2","state":{"status":"completed","input":'
    '{"command":"exit 3","description":"d"},"output":"(no output)","metadata":{"output":"(no output)","exit":3}}}}'
)
FINISH = (
    '{"type":"step_finish","timestamp":1795274059183,"sessionID":"ses_1","part":{"id":"prt_3","reason":"tool-calls",'
    '"type":"step-finish","tokens":{"total":110,"input":80,"output":7,"reasoning":3,"cache":{"write":0,"read":20}},'
    '"cost":0.0125}}'
)
REFUSED = (
    '{"type":"error","timestamp":1795275789765,"sessionID":"ses_1","error":{"name":"APIError","data":{"message":'
    '"this key is not known","statusCode":400,"isRetryable":false}}}'
)


def read(parser: OpencodeJson, *lines: str) -> list[Event]:
    return [event for line in lines for event in parser.feed(line)]


def test_a_step() -> None:
    events = read(OpencodeJson(), START, THOUGHT, TEXT, EDIT, FINISH)
    assert [event.kind for event in events] == [
        EventKind.REASONING,
        EventKind.MESSAGE,
        EventKind.TOOL_CALL,
        EventKind.TOOL_RESULT,
        EventKind.USAGE,
    ]
    assert [event.text for event in events[:2]] == ["Hm.", "Step 0."]


def test_an_edit_has_its_diff_and_its_result() -> None:
    call, result = read(OpencodeJson(), EDIT)
    assert (call.tool, call.call, call.diff) == ("edit", "call_0", DIFF)
    assert (result.call, result.text, result.failed) == ("call_0", "Edit applied successfully.", False)


@pytest.mark.parametrize(("line", "says"), [(NOT_EDITED, "File /nowhere/x not found"), (EXIT_3, "(no output)")])
def test_tools_that_failed(line: str, says: str) -> None:
    call, result = read(OpencodeJson(), line)
    assert (call.failed, result.failed, result.text) == (False, True, says)


def test_tokens_include_the_cache_and_the_thoughts() -> None:
    (event,) = read(OpencodeJson(), FINISH)
    assert event.tokens == Tokens(input=100, output=10, cached=20)
    assert event.cost_usd == 0.0125


def test_what_went_wrong_in_the_end() -> None:
    parser = OpencodeJson()
    (event,) = read(parser, REFUSED)
    assert event.failed and parser.error == "this key is not known"


def test_a_line_that_cannot_be_read_is_a_note() -> None:
    lines = ["Performing one time database migration", '{"type":"tool_use","part":{}}', "7", '{"type":"news"}']
    events = read(OpencodeJson(), *lines, "")
    assert [event.kind for event in events] == [EventKind.NOTE] * len(lines)
    assert events[0].text == lines[0] and "news" in events[3].text
