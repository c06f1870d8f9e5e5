"""The real Gemini CLI and OpenCode, with stand-ins for the models: their edits, evaluations, tokens and errors."""

from __future__ import annotations

from pathlib import Path

from arena.results.session import Event, EventKind, Tokens
from tests.agents.clis import cli
from tests.agents.standins.base import Call, Fault, StandIn, Turn
from tests.agents.standins.chat_completions import ChatCompletionsStandIn
from tests.agents.standins.generate_content import GenerateContentStandIn
from tests.agents.standins.openai_responses import OpenAIResponsesStandIn
from tests.agents.started import Ran, make_workspace, start

KEY = "test-0123456789abcdef"
REFUSED = Fault(400, "INVALID_ARGUMENT", "this key is not known")


def gemini_script(kernel: str) -> list[Turn]:
    def edit(old: str, new: str) -> Call:
        given = {"file_path": kernel, "instruction": "change the order", "old_string": old, "new_string": new}
        return Call("replace", given)

    find_availability = Call("run_shell_command", {"command": "./evaluate", "description": "evaluate"})
    return [
        Turn("I change the order of the operands, since addition commutes.", (edit("x + y", "y - x"),), "Hm."),
        Turn("", (find_availability,)),
        Turn("A mistake.", (edit("y - x", "y + x"),)),
        Turn("", (find_availability,)),
        Turn("Done."),
    ]


def opencode_script(kernel: str) -> list[Turn]:
    def edit(old: str, new: str) -> Call:
        return Call("edit", {"filePath": kernel, "oldString": old, "newString": new})

    find_availability = Call("bash", {"command": "./evaluate", "description": "evaluate"})
    return [
        Turn("I change the order of the operands, since addition commutes.", (edit("x + y", "y - x"),)),
        Turn("", (find_availability,)),
        Turn("A mistake.", (edit("y - x", "y + x"),)),
        Turn("", (find_availability,)),
        Turn("Done."),
    ]


def gemini(workspace: Path, stand_in: StandIn) -> Ran:
    given = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": stand_in.url}
    return start("gemini_cli", workspace, given, "gemini-2.5-pro", cli("gemini_cli").parent)


def opencode(workspace: Path, stand_in: StandIn, model: str) -> Ran:
    given = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{stand_in.url}/v1", "COMPATIBLE_MODEL": "some-model"}
    return start("opencode", workspace, given, model, cli("opencode").parent)


def check(ran: Ran, judge_pool: list[Turn]) -> None:
    assert (ran.code, ran.error) == (0, ""), ran.stderr
    assert "y + x" in ran.kernel
    assert ran.texts(EventKind.MESSAGE) == [turn.text for turn in judge_pool if turn.text]
    calls = [event for event in ran.events if event.kind is EventKind.TOOL_CALL]
    assert [event.tool for event in calls] == [call.tool for turn in judge_pool for call in turn.calls]
    assert "-    return x + y\n+    return y - x\n" in calls[0].diff or "-x + y\n" in calls[0].diff
    results = [event for event in ran.events if event.kind is EventKind.TOOL_RESULT]
    assert [event.call for event in results] == [event.call for event in calls]
    assert "failed: wrong output" in results[1].text and "passed, speedup 1.50" in results[3].text
    assert ran.tokens == Tokens(input=500, output=100, cached=200)


def test_gemini_cli_edits_fails_fixes_and_passes(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    judge_pool = gemini_script(str(workspace / "kernel.py"))
    with GenerateContentStandIn(judge_pool) as stand_in:
        ran = gemini(workspace, stand_in)
    check(ran, judge_pool)
    assert ran.model == "gemini-2.5-pro"
    assert all(request.headers["x-goog-api-key"] == KEY for request in stand_in.requests)


def test_gemini_cli_with_a_refused_key(tmp_path: Path) -> None:
    with GenerateContentStandIn([REFUSED]) as stand_in:
        ran = gemini(make_workspace(tmp_path), stand_in)
    assert ran.code != 0 and REFUSED.message in ran.error


def test_opencode_edits_fails_fixes_and_passes(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    judge_pool = opencode_script(str(workspace / "kernel.py"))
    with ChatCompletionsStandIn(judge_pool) as stand_in:
        ran = opencode(workspace, stand_in, "compatible/some-model")
    check(ran, judge_pool)
    assert len(stand_in.requests) == len(judge_pool)
    assert failed(ran) == [False, True, False, False]


def test_opencode_with_a_provider_that_it_knows(tmp_path: Path) -> None:
    with OpenAIResponsesStandIn([Turn("Nothing to do.")]) as stand_in:
        ran = opencode(make_workspace(tmp_path), stand_in, "openai/gpt-5")
    assert ran.texts(EventKind.MESSAGE) == ["Nothing to do."]
    assert ran.tokens == Tokens(input=100, output=20, cached=40)


def test_opencode_with_a_refused_key(tmp_path: Path) -> None:
    with ChatCompletionsStandIn([REFUSED]) as stand_in:
        ran = opencode(make_workspace(tmp_path), stand_in, "compatible/some-model")
    assert REFUSED.message in ran.error


def failed(ran: Ran) -> list[bool]:
    results: list[Event] = [event for event in ran.events if event.kind is EventKind.TOOL_RESULT]
    return [event.failed for event in results]
