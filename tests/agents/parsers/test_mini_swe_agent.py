"""Lines that the driver printed inside mini-swe-agent 2.4.6."""

from __future__ import annotations

from arena.agents.parsers.mini_swe_agent import MiniSweAgent
from arena.results.session import Event, EventKind, Tokens

START = '{"type": "start", "version": "2.4.6", "model": "openai/some-model"}'
SYSTEM = '{"type": "system", "text": "You are a helpful assistant that can interact with a computer."}'
ANSWER = (
    '{"type": "assistant", "text": "Fix.", "reasoning": "hmm", "commands": [{"call": "call_2x00", "command": "true"}, '
    '{"call": "call_2x01", "command": "./evaluate"}], "usage": {"input": 100, "output": 20, "cached": 40}, '
    '"cost_usd": 0.25}'
)
FAILED = '{"type": "tool", "text": "failed\\n", "call": "call_2x01", "returncode": 1, "exception": ""}'
TIMED_OUT = '{"type": "tool", "text": "1 of 9\\n", "call": "c", "returncode": -1, "exception": "timed out after 30 s"}'
NOT_READ = (
    '{"type": "user", "text": "Tool call error", "usage": {"input": 10, "output": 2, "cached": 0}, "cost_usd": 0.5}'
)
SUBMITTED = '{"type": "exit", "text": "", "exit_status": "Submitted"}'
REFUSED = '{"type": "exit", "text": "litellm.AuthenticationError: bad key", "exit_status": "AuthenticationError"}'
REPEATED = '{"type": "exit", "text": "RepeatedFormatError", "exit_status": "RepeatedFormatError"}'
TIMEOUT = '{"type": "exit", "text": "no answer", "exit_status": "Timeout"}'


def read(parser: MiniSweAgent, *lines: str) -> list[Event]:
    return [event for line in lines for event in parser.feed(line)]


def test_the_start_names_version_and_model() -> None:
    parser = MiniSweAgent()
    start, prompt = read(parser, START, SYSTEM)
    assert parser.model == "openai/some-model"
    assert start.text == "mini-swe-agent 2.4.6 with openai/some-model"
    assert (prompt.kind, prompt.tokens) == (EventKind.NOTE, Tokens())


def test_an_answer_is_counted_once() -> None:
    events = read(MiniSweAgent(), ANSWER)
    assert [(event.kind, event.text) for event in events] == [
        (EventKind.REASONING, "hmm"),
        (EventKind.MESSAGE, "Fix."),
        (EventKind.TOOL_CALL, "true"),
        (EventKind.TOOL_CALL, "./evaluate"),
        (EventKind.USAGE, ""),
    ]
    assert [event.call for event in events[2:4]] == ["call_2x00", "call_2x01"]
    assert sum((event.tokens for event in events), Tokens()) == Tokens(100, 20, 40)
    assert sum(event.cost_usd for event in events) == 0.25


def test_results() -> None:
    failed, late = read(MiniSweAgent(), FAILED, TIMED_OUT)
    assert (failed.text, failed.call, failed.failed) == ("failed\n", "call_2x01", True)
    assert late.failed and late.text == "1 of 9\n\ntimed out after 30 s"


def test_an_answer_that_the_library_could_not_read_is_counted_too() -> None:
    (event,) = read(MiniSweAgent(), NOT_READ)
    assert (event.kind, event.tokens, event.cost_usd) == (EventKind.NOTE, Tokens(10, 2, 0), 0.5)


def test_endings() -> None:
    for line, error in (
        (SUBMITTED, ""),
        (REFUSED, "litellm.AuthenticationError: bad key"),
        (REPEATED, "RepeatedFormatError"),
        (TIMEOUT, "Timeout: no answer"),
    ):
        parser = MiniSweAgent()
        (event,) = read(parser, line)
        assert (parser.error, event.failed) == (error, bool(error))


def test_a_line_that_cannot_be_read_is_a_note() -> None:
    lines = ["Building agent config from specs: ['mini.yaml']", '{"type": "assistant"}', "3", '{"type": "exit"}']
    events = read(MiniSweAgent(), *lines, "")
    assert [(event.kind, event.text) for event in events] == [(EventKind.NOTE, line) for line in lines]
