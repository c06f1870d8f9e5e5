"""Claude Code's lines, as version 2.1.197 prints them (cut to what is read)."""

from __future__ import annotations

import json

from arena.agents.parsers.claude_stream import ClaudeStream
from arena.results.session import Event, EventKind, Tokens

KERNEL = "/w/kernel.py"
USAGE = {"input_tokens": 50, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 40, "output_tokens": 1}
INIT = {
    "type": "system",
    "subtype": "init",
    "cwd": "/w",
    "tools": ["Task", "Bash", "Edit"],
    "model": "claude-opus-4-8[1m]",
    "claude_code_version": "2.1.197",
}


def assistant(number: int, *blocks: object, parent: str | None = None) -> dict[str, object]:
    message = {"id": f"msg_{number}", "model": "claude-opus-4-8", "role": "assistant", "content": blocks}
    return {"type": "assistant", "message": {**message, "usage": USAGE}, "parent_tool_use_id": parent}


def use(call: str, name: str, **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def answer(call: str, content: object, result: object = None, **more: object) -> dict[str, object]:
    block = {"tool_use_id": call, "type": "tool_result", "content": content, **more}
    message = {"role": "user", "content": [block]}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "tool_use_result": result}


def result(output: int, inputs: int = 100, **more: object) -> dict[str, object]:
    used = {
        "inputTokens": inputs - 50,
        "outputTokens": output,
        "cacheReadInputTokens": 40,
        "cacheCreationInputTokens": 10,
    }
    head = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 2, "result": "Done."}
    return {**head, "total_cost_usd": 0.25, "modelUsage": {"claude-opus-4-8[1m]": used}, **more}


def read(*lines: object, parser: ClaudeStream | None = None) -> list[Event]:
    reader = parser or ClaudeStream()
    return [event for line in lines for event in reader.feed(json.dumps(line) + "\n")]


def test_the_beginning_says_program_model_and_tools() -> None:
    parser = ClaudeStream()
    (event,) = read(INIT, parser=parser)
    assert event == Event(EventKind.NOTE, "Claude Code 2.1.197, claude-opus-4-8[1m]; Task, Bash, Edit")
    assert parser.model == "claude-opus-4-8[1m]"


def test_a_message_is_counted_once_although_each_block_repeats_its_usage() -> None:
    events = read(
        assistant(0, {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}),
        assistant(0, {"type": "text", "text": "I look."}),
        assistant(0, use("t0", "Bash", command="ls")),
    )
    kinds = [EventKind.REASONING, EventKind.MESSAGE, EventKind.TOOL_CALL]
    assert [event.kind for event in events] == kinds
    assert [event.tokens for event in events] == [Tokens(100, 1, 40), Tokens(), Tokens()]
    assert (events[2].tool, events[2].call, events[2].text) == ("Bash", "t0", '{"command": "ls"}')


def test_the_end_adds_what_was_not_counted_and_no_more() -> None:
    (*_, event) = read(assistant(0, {"type": "text", "text": "Done."}), result(20))
    assert (event.kind, event.tokens, event.cost_usd) == (EventKind.USAGE, Tokens(0, 19, 0), 0.25)
    twice = read(assistant(0, {"type": "text", "text": "Done."}), result(20), result(30, total_cost_usd=0.5))
    assert sum((event.tokens for event in twice), Tokens()) == Tokens(100, 30, 40)
    assert sum(event.cost_usd for event in twice) == 0.5


def test_partial_messages_tell_the_tokens_as_they_come() -> None:
    begin = {"type": "message_start", "message": {"id": "msg_0", "usage": USAGE}}
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Do"}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {**USAGE, "output_tokens": 20}}
    wrapped = [{"type": "stream_event", "event": event, "parent_tool_use_id": None} for event in (begin, piece, end)]
    events = read(*wrapped[:2], assistant(0, {"type": "text", "text": "Done."}), wrapped[2], result(20))
    assert [event.tokens for event in events] == [Tokens(100, 1, 40), Tokens(0, 19, 0), Tokens()]


def test_a_tools_answer_knows_its_call_and_its_failure() -> None:
    failed = answer("t0", "Exit code 1\nfailed: wrong", "Error: Exit code 1", is_error=True)
    assert read(failed) == [Event(EventKind.TOOL_RESULT, "Exit code 1\nfailed: wrong", call="t0", failed=True)]
    parts = answer("t1", [{"type": "text", "text": "seen"}, {"type": "image", "source": {}}], is_error=False)
    assert read(parts) == [Event(EventKind.TOOL_RESULT, "seen\n[image]", call="t1")]


def test_an_edit_is_a_diff_of_the_file_where_it_was_read() -> None:
    file = {"filePath": KERNEL, "content": "a\nb = 1\n", "numLines": 3, "startLine": 1, "totalLines": 3}
    edit = assistant(0, use("t1", "Edit", file_path=KERNEL, old_string="1", new_string="3", replace_all=False))
    edited = {"filePath": KERNEL, "oldString": "1", "newString": "3", "originalFile": "a\nb = 1\n", "replaceAll": False}
    write = assistant(1, use("t2", "Write", file_path=KERNEL, content="a\nb = 2\n"))
    events = read(answer("t0", "1\ta", {"type": "text", "file": file}), edit, answer("t1", "ok", edited), write)
    head = "--- a/w/kernel.py\n+++ b/w/kernel.py\n@@ -1,2 +1,2 @@\n a\n"
    assert [event.diff for event in events if event.diff] == [f"{head}-b = 1\n+b = 3\n", f"{head}-b = 3\n+b = 2\n"]


def test_an_edit_of_a_file_that_was_not_seen_shows_its_pieces() -> None:
    edits = [{"old_string": "x", "new_string": "y"}, {"old_string": "u\n", "new_string": "v\n"}]
    (event,) = read(assistant(0, use("t0", "MultiEdit", file_path=KERNEL, edits=edits)))
    assert "-x\n\\ No newline at end of file\n+y\n" in event.diff and "-u\n+v\n" in event.diff
    (new,) = read(assistant(0, use("t0", "Write", file_path=KERNEL, content="a\n")))
    assert new.diff == "--- /dev/null\n+++ b/w/kernel.py\n@@ -0,0 +1 @@\n+a\n"


def test_what_a_subagent_does_is_inside_the_call_that_started_it() -> None:
    errand = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "Look at it."}]}}
    progress = {"type": "system", "subtype": "task_progress", "task_id": "a7", "tool_use_id": "t0"}
    events = read(
        assistant(0, use("t0", "Agent", prompt="Look at it.")),
        {**errand, "parent_tool_use_id": "t0"},
        progress,
        assistant(1, use("t1", "Bash", command="ls"), parent="t0"),
        {**answer("t1", "kernel.py"), "parent_tool_use_id": "t0"},
        result(40, inputs=250),
    )
    assert [(event.call, event.parent) for event in events[:3]] == [("t0", ""), ("t1", "t0"), ("t1", "t0")]
    assert sum((event.tokens for event in events), Tokens()) == Tokens(250, 40, 80)


def test_errors_of_the_program_are_no_messages_of_the_model() -> None:
    said = "Not logged in · Please run /login"
    message = {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": said}], "usage": USAGE}
    lost = {"type": "assistant", "message": message, "error": "authentication_failed"}
    parser = ClaudeStream()
    end = result(0, inputs=50, is_error=True, result=said, modelUsage={}, total_cost_usd=0)
    note, usage = read(lost, end, parser=parser)
    assert note == Event(EventKind.NOTE, said, failed=True)
    assert (usage.tokens, usage.failed, parser.error) == (Tokens(), True, said)
    failed = {**end, "result": None, "subtype": "error_during_execution", "errors": ["one", "two"]}
    read(failed, parser=parser)
    assert parser.error == "one; two"


def test_a_request_that_is_tried_again_is_a_note() -> None:
    retry = {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 1,
        "max_retries": 10,
        "retry_delay_ms": 612.4,
        "error_status": 401,
        "error": "authentication_failed",
    }
    text = "attempt 1 of 10 failed: authentication_failed (401); the next in 0.6 s"
    assert read(retry) == [Event(EventKind.NOTE, text, failed=True)]
    assert not read({"type": "system", "subtype": "thinking_tokens", "estimated_tokens": 10})
    assert read({"type": "system", "subtype": "compact_boundary"}) == [Event(EventKind.NOTE, "compact boundary")]
