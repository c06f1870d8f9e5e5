"""What the driver says of a message of mini-swe-agent."""

from __future__ import annotations

import json

import pytest

from arena.agents.inside.mini_swe_agent import described, say, text_of

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 40}}


def test_an_answer_with_commands_tokens_and_cost() -> None:
    actions = [{"command": "ls", "tool_call_id": "c1"}]
    extra = {"actions": actions, "response": {"usage": USAGE}, "cost": 0.5}
    assert described({"role": "assistant", "content": None, "extra": extra}) == {
        "type": "assistant",
        "text": "",
        "commands": [{"call": "c1", "command": "ls"}],
        "usage": {"input": 100, "output": 20, "cached": 40},
        "cost_usd": 0.5,
    }


def test_an_observation_is_the_output_itself() -> None:
    extra = {"raw_output": "42\n", "returncode": 0, "exception_info": None}
    line = described({"role": "tool", "content": '{"returncode": 0}', "tool_call_id": "c1", "extra": extra})
    assert line == {"type": "tool", "text": "42\n", "call": "c1", "returncode": 0, "exception": ""}


def test_providers_that_report_no_tokens() -> None:
    for response in ({}, {"usage": None}, {"usage": {"prompt_tokens": None}}):
        line = described({"role": "assistant", "content": "x", "extra": {"response": response, "cost": 0.0}})
        assert line["usage"] == {"input": 0, "output": 0, "cached": 0}


def test_an_ending() -> None:
    line = described({"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": ""}})
    assert line == {"type": "exit", "text": "", "exit_status": "Submitted"}


def test_content_in_parts() -> None:
    assert text_of([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]) == "a\nb"


def test_one_line_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    say({"type": "x", "text": "a\nb", "odd": object()})
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["text"] == "a\nb"
