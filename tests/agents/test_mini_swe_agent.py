"""The real mini-swe-agent, with a stand-in for the model: its edits, its evaluations, its tokens, its ending."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.results.session import EventKind, Tokens
from tests.agents.minis import mini_folder
from tests.agents.standins.base import Call, Fault, Turn
from tests.agents.standins.chat_completions import ChatCompletionsStandIn
from tests.agents.started import Ran, make_workspace, start

pytestmark = pytest.mark.timeout(400)  # the first one installs it


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


SCRIPT = (
    Turn("I change the order.", (bash("sed -i 's/x + y/y - x/' kernel.py"),), reasoning="Addition commutes."),
    Turn("Now I look.", (bash("./evaluate"),)),
    Turn("A mistake.", (bash("sed -i 's/y - x/y + x/' kernel.py"), bash('./evaluate; echo "[$PYTHONPATH]"'))),
    Turn("Done.", (bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),)),
)


def work(folder: Path, stand_in: ChatCompletionsStandIn) -> Ran:
    given = {"OPENAI_API_KEY": "sk-test-0123456789", "OPENAI_BASE_URL": f"{stand_in.url}/v1"}
    return start("mini_swe_agent", make_workspace(folder), given, "openai/some-model", mini_folder())


@pytest.mark.slow
def test_edits_fails_fixes_passes_and_submits(tmp_path: Path) -> None:
    with ChatCompletionsStandIn(SCRIPT) as stand_in:
        ran = work(tmp_path, stand_in)
    assert (ran.code, ran.error, ran.model) == (0, "", "openai/some-model"), ran.stderr
    assert "y + x" in ran.kernel
    assert len(stand_in.requests) == len(SCRIPT)
    assert ran.texts(EventKind.MESSAGE) == [turn.text for turn in SCRIPT]
    assert ran.texts(EventKind.REASONING) == ["Addition commutes."]
    assert ran.texts(EventKind.TOOL_CALL) == [call.arguments["command"] for turn in SCRIPT for call in turn.calls]
    assert ran.tokens == Tokens(input=400, output=80, cached=160)
    check_results(ran)


def check_results(ran: Ran) -> None:
    """Each belongs to its call; commands do without the driver's PYTHONPATH."""
    results = [event for event in ran.events if event.kind is EventKind.TOOL_RESULT]
    assert [(event.text, event.failed) for event in results] == [
        ("", False),
        ("failed: wrong output\n", True),
        ("", False),
        ("passed, speedup 1.50\n[]\n", False),
    ]
    calls = [event.call for event in ran.events if event.kind is EventKind.TOOL_CALL]
    assert [event.call for event in results] == calls[:-1]  # the last one ends the session instead of answering


@pytest.mark.slow
def test_a_refused_key_is_an_error(tmp_path: Path) -> None:
    with ChatCompletionsStandIn([Fault(401, "invalid_api_key", "this key is not known")]) as stand_in:
        ran = work(tmp_path, stand_in)
    assert ran.code == 1
    assert "AuthenticationError" in ran.error and "this key is not known" in ran.error


@pytest.mark.slow
def test_an_answer_without_a_command_is_counted_and_answered(tmp_path: Path) -> None:
    with ChatCompletionsStandIn([Turn("I only talk.")]) as stand_in:
        ran = work(tmp_path, stand_in)
    assert ran.error == "RepeatedFormatError"
    assert ran.tokens == Tokens(input=300, output=60, cached=120)
