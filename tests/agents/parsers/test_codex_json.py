"""Codex' lines, as version 0.169.0 prints them."""

from __future__ import annotations

from arena.agents.parsers.codex_json import CodexJson
from arena.results.session import Event, EventKind, Tokens

STARTED = (
    '{"type":"item.started","item":{"id":"item_5","type":"command_execution","command":"/bin/bash -lc ./evaluate",'
    '"aggregated_output":"","exit_code":null,"status":"in_progress"}}'
)
ENDED = (
    '{"type":"item.completed","item":{"id":"item_5","type":"command_execution","command":"/bin/bash -lc ./evaluate",'
    '"aggregated_output":"failed: wrong\\n","exit_code":1,"status":"failed"}}'
)
SESSION = (
    '{"type":"thread.started","thread_id":"01a1feba-e8c3"}',
    '{"type":"turn.started"}',
    '{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"**Looking**\\n\\nFirst the task."}}',
    '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"I read the task."}}',
    '{"type":"turn.completed","usage":{"input_tokens":600,"cached_input_tokens":240,"cache_write_input_tokens":0,'
    '"output_tokens":120,"reasoning_output_tokens":0}}',
)


def read(*lines: str, parser: CodexJson | None = None) -> list[Event]:
    reader = parser or CodexJson()
    return [event for line in lines for event in reader.feed(f"{line}\n")]


def test_a_session_from_its_thread_to_its_tokens() -> None:
    assert read(*SESSION) == [
        Event(EventKind.NOTE, "thread 01a1feba-e8c3"),
        Event(EventKind.REASONING, "**Looking**\n\nFirst the task."),
        Event(EventKind.MESSAGE, "I read the task."),
        Event(EventKind.USAGE, tokens=Tokens(600, 120, 240)),
    ]


def test_a_command_is_called_when_it_starts_and_answered_when_it_ends() -> None:
    called = Event(EventKind.TOOL_CALL, "/bin/bash -lc ./evaluate", tool="command_execution", call="item_5")
    answered = Event(EventKind.TOOL_RESULT, "failed: wrong\n", call="item_5", failed=True)
    assert read(STARTED) == [called]
    assert read(STARTED, ENDED) == [called, answered]
    assert read(ENDED) == [called, answered], "an item whose start was not said"


def test_changed_files_are_named() -> None:
    item = '{"id":"item_4","type":"file_change","changes":[{"path":"/w/kernel.py","kind":"update"}],"status":"%s"}'
    lines = [f'{{"type":"item.{kind}","item":{item % status}}}' for kind, status in (("started", "in_progress"),)]
    (call,) = read(*lines)
    assert (call.tool, call.text, call.diff) == ("file_change", "update /w/kernel.py", "")
    _, done = read(*lines, f'{{"type":"item.completed","item":{item % "completed"}}}')
    assert (done.kind, done.failed) == (EventKind.TOOL_RESULT, False)
    _, refused = read(*lines, f'{{"type":"item.completed","item":{item % "failed"}}}')
    assert refused.failed


def test_other_tools_and_lists() -> None:
    call, answer = read(
        '{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"docs","tool":"find","arguments":'
        '{"q":"wmma"},"result":{"content":[{"type":"text","text":"found"}]},"error":null,"status":"completed"}}'
    )
    assert (call.tool, call.text, answer.text) == ("docs.find", '{"q": "wmma"}', "found")
    search, _ = read('{"type":"item.completed","item":{"id":"i","type":"web_search","query":"wave size"}}')
    assert (search.tool, search.text) == ("web_search", "wave size")
    todo = '{"id":"i","type":"todo_list","items":[{"text":"read","completed":true},{"text":"edit","completed":false}]}'
    assert read(f'{{"type":"item.completed","item":{todo}}}') == [Event(EventKind.NOTE, "[x] read\n[ ] edit")]
    assert not read(f'{{"type":"item.updated","item":{todo}}}')


def test_only_a_failed_turn_is_the_end() -> None:
    parser = CodexJson()
    again = "Reconnecting... 1/5 (unexpected status 401 Unauthorized)"
    assert read(f'{{"type":"error","message":"{again}"}}', parser=parser) == [Event(EventKind.NOTE, again, failed=True)]
    missing = "Model metadata for `gpt-5` not found."
    warned = f'{{"type":"item.completed","item":{{"id":"item_0","type":"error","message":"{missing}"}}}}'
    assert read(warned, parser=parser)[0].text == missing
    before = parser.error
    read('{"type":"turn.failed","error":{"message":"Quota exceeded."}}', parser=parser)
    assert (before, parser.error) == ("", "Quota exceeded.")
