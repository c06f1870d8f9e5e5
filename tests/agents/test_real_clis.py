"""Real CLIs follow a script: they read the task, make a mistake, see it in `./evaluate`, repair it and stop."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from arena.agents.definition import DEFINITIONS, Definition, PromptBy, fill_in, load_definition
from arena.agents.parsers import make_parser
from arena.results.session import Event, EventKind, Tokens
from tests.agents.clis import cli
from tests.agents.standins.anthropic import AnthropicStandIn
from tests.agents.standins.base import Call, Fault, Seen, StandIn, Step, Turn
from tests.agents.standins.openai_responses import PATCH, OpenAIResponsesStandIn

pytestmark = [pytest.mark.timeout(300)]

TIMEOUT_S = 30
START = "def scale(x):\n    return x * 1\n"
WRONG = START.replace("1", "3")
RIGHT = START.replace("1", "2")
EVALUATE = """#!/bin/sh
if grep -q "x \\* 2" kernel.py; then echo "all cases passed"; else echo "case 0 failed"; exit 1; fi
"""


@dataclass(frozen=True)
class Session:
    """What a program left behind."""

    exit_code: int
    events: list[Event]
    model: str
    error: str
    kernel: str
    log: str

    def kinds(self, kind: EventKind) -> list[Event]:
        return [event for event in self.events if event.kind is kind]

    @property
    def tokens(self) -> Tokens:
        return sum((event.tokens for event in self.events), Tokens())


def workspace(root: Path) -> Path:
    folder = root / "workspace"
    folder.mkdir()
    (folder / "TASK.md").write_text("Make kernel.py double its argument.\n", encoding="utf-8")
    (folder / "kernel.py").write_text(START, encoding="utf-8")
    (folder / "evaluate").write_text(EVALUATE, encoding="utf-8")
    (folder / "evaluate").chmod(0o755)
    return folder


def start(name: str, place: Path, given: Mapping[str, str], model: str = "") -> Session:
    """Run a definition's program in `place`, in the environment that the definition asks for and no other."""
    definition = load_definition(DEFINITIONS / f"{name}.yaml")
    binary = cli(name)
    home = place.parent / "home"
    home.mkdir()
    unset = dict.fromkeys((*definition.passes, *definition.credentials), "")
    values = {**unset, **given, "WORKSPACE": str(place), "HOME": str(home), "MODEL": model}
    command = [fill_in(part, values) for part in (*definition.command, *(definition.model if model else ()))]
    assert definition.prompt is PromptBy.STDIN and command[0] == binary.name
    process = subprocess.Popen(
        command,
        cwd=place,
        env=environment(definition, values, binary.parent, home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, log = process.communicate((place / "TASK.md").read_text(encoding="utf-8"), TIMEOUT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    parser = make_parser(definition.events)
    events = [event for line in out.splitlines() for event in parser.feed(line)]
    kernel = (place / "kernel.py").read_text(encoding="utf-8")
    return Session(process.returncode, events, parser.model, parser.error, kernel, log)


def environment(definition: Definition, values: Mapping[str, str], folder: Path, home: Path) -> dict[str, str]:
    taken = {name: values[name] for name in (*definition.passes, *definition.credentials) if values.get(name)}
    written = {name: fill_in(text, values) for name, text in definition.environment.items()}
    return {"HOME": str(home), "PATH": f"{folder}:{os.environ['PATH']}", **taken, **written}


def repair(call: Callable[[Seen], Turn]) -> Step:
    """The step after `./evaluate` failed: the model has seen why."""

    def step(seen: Seen) -> Turn:
        assert any("case 0 failed" in result for result in seen.results), seen.results
        return call(seen)

    return step


def check_story(session: Session) -> None:
    """What holds of every agent that followed the script."""
    assert (session.exit_code, session.error, session.kernel) == (0, "", RIGHT), session.log
    assert session.tokens == Tokens(600, 120, 240)
    assert [event.text for event in session.kinds(EventKind.MESSAGE)] == ["I read the task.", "It doubles now."]
    assert "First the task" in session.kinds(EventKind.REASONING)[0].text
    calls = session.kinds(EventKind.TOOL_CALL)
    results = {event.call: event for event in session.kinds(EventKind.TOOL_RESULT)}
    assert set(results) == {event.call for event in calls} and len(calls) == len(results) == 6
    evaluations = [results[event.call] for event in calls if "./evaluate" in event.text]
    assert [event.failed for event in evaluations] == [True, False]
    assert "case 0 failed" in evaluations[0].text and "all cases passed" in evaluations[1].text


def claude_script(place: Path) -> list[Step]:
    def edit(old: str, new: str) -> Call:
        return Call("Edit", {"file_path": str(place / "kernel.py"), "old_string": old, "new_string": new})

    evaluate = Turn(calls=(Call("Bash", {"command": "./evaluate", "description": "Evaluate"}),))
    write = Call("Write", {"file_path": str(place / "kernel.py"), "content": RIGHT})
    reads = tuple(Call("Read", {"file_path": str(place / name)}) for name in ("TASK.md", "kernel.py"))
    return [
        Turn("I read the task.", reads, reasoning="First the task."),
        Turn(calls=(edit("x * 1", "x * 3"),)),
        evaluate,
        repair(lambda seen: Turn(calls=(write,))),
        evaluate,
        Turn("It doubles now."),
    ]


def claude_environment(api: StandIn) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}


def test_claude_code_follows_the_script(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    with AnthropicStandIn(claude_script(place)) as api:
        session = start("claude_code", place, claude_environment(api))
    check_story(session)
    assert "claude" in session.model
    edits = [event for event in session.events if event.diff]
    assert [event.tool for event in edits] == ["Edit", "Write"]
    assert "-    return x * 1\n+    return x * 3\n" in edits[0].diff
    assert "-    return x * 3\n+    return x * 2\n" in edits[1].diff
    assert sum(event.cost_usd for event in session.events) > 0
    asked = api.asked("/v1/messages")
    tools = {tool["name"]: tool["input_schema"]["properties"] for tool in asked[0].body["tools"]}
    assert {"Bash", "Read", "Edit", "Write"} <= set(tools) and not {"WebFetch", "WebSearch"} & set(tools)
    assert {"file_path", "old_string", "new_string"} <= set(tools["Edit"])
    assert {request.headers["x-api-key"] for request in asked} == {"sk-ant-test-0123456789"}


@pytest.mark.slow
def test_claude_code_nests_what_a_subagent_does(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    errand = {"description": "Look", "prompt": "ERRAND: look at the kernel", "subagent_type": "general-purpose"}
    mine = [Turn("I ask.", (Call("Agent", errand),)), Turn("It is known.")]
    theirs = [Turn(calls=(Call("Bash", {"command": "cat kernel.py", "description": "Look"}),)), Turn("A product.")]

    def script(seen: Seen) -> Turn:
        return (theirs if "ERRAND" in seen.prompt else mine)[min(seen.turn, 1)]

    with AnthropicStandIn(script) as api:
        session = start("claude_code", place, claude_environment(api), model="claude-sonnet-5-5")
    agent, look = session.kinds(EventKind.TOOL_CALL)
    assert (agent.tool, agent.parent, look.tool, look.parent) == (
        "Agent",
        "",
        "Bash",
        agent.call,
    )
    answer, whole = session.kinds(EventKind.TOOL_RESULT)
    assert (answer.parent, answer.text, whole.call) == (agent.call, START.rstrip(), agent.call)
    assert session.tokens == Tokens(400, 80, 160)
    assert session.model == "claude-sonnet-5-5"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "said"), [("", "Not logged in"), ("sk-ant-test-0123456789", "Credit balance is too low")]
)
def test_claude_code_says_why_it_cannot_work(tmp_path: Path, key: str, said: str) -> None:
    place = workspace(tmp_path)
    fault = Fault(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.")
    with AnthropicStandIn([fault]) as api:
        given = {"ANTHROPIC_BASE_URL": api.url, **({"ANTHROPIC_API_KEY": key} if key else {})}
        session = start("claude_code", place, given)
    assert session.exit_code == 1 and said in session.error
    assert session.tokens == Tokens() and not session.kinds(EventKind.MESSAGE)


def shell(command: str) -> Call:
    return Call("exec_command", {"cmd": command})


def patch(old: str, new: str) -> Call:
    change = f"-    return x * {old}\n+    return x * {new}\n"
    return Call("apply_patch", {PATCH: f"*** Begin Patch\n*** Update File: kernel.py\n@@\n{change}*** End Patch\n"})


CODEX_SCRIPT: list[Step] = [
    Turn("I read the task.", (shell("cat TASK.md"), shell("cat kernel.py")), reasoning="**Look**\n\nFirst the task."),
    Turn(calls=(patch("1", "3"),)),
    Turn(calls=(shell("./evaluate"),)),
    repair(lambda seen: Turn(calls=(patch("3", "2"),))),
    Turn(calls=(shell("./evaluate"),)),
    Turn("It doubles now."),
]


def codex_environment(api: StandIn) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{api.url}/v1", "OPENAI_API_KEY": "sk-test-0123456789"}


def test_codex_follows_the_script(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    with OpenAIResponsesStandIn(CODEX_SCRIPT) as api:
        session = start("codex", place, codex_environment(api), model="gpt-5.5")
    check_story(session)
    changes = [event for event in session.kinds(EventKind.TOOL_CALL) if event.tool == "file_change"]
    assert [event.text for event in changes] == [f"update {place / 'kernel.py'}"] * 2
    asked = [request for request in api.asked("/v1/responses") if request.method == "POST"]
    tools = {tool.get("name", tool["type"]) for tool in asked[0].body["tools"]}
    assert {"exec_command", "apply_patch"} <= tools and "web_search" not in tools
    assert {request.headers["authorization"] for request in asked} == {"Bearer sk-test-0123456789"}


@pytest.mark.slow
def test_codex_calls_its_tools_from_javascript_with_its_own_model(tmp_path: Path) -> None:
    """The model that it takes by itself has one tool, `exec`, which runs a script that calls the others."""
    place = workspace(tmp_path)

    def script(seen: Seen) -> Turn:
        assert "exec" in seen.tools, seen.tools
        command = f"sed -i 's/1/2/' {place / 'kernel.py'} && ./evaluate"
        code = f'const done = await tools.exec_command({{cmd: "{command}"}});\ntext(done.output);\n'
        return [Turn(calls=(Call("exec", {PATCH: code}),)), Turn(f"It said: {' '.join(seen.results)}")][seen.turn]

    with OpenAIResponsesStandIn(script) as api:
        session = start("codex", place, codex_environment(api))
    assert (session.exit_code, session.kernel) == (0, RIGHT), session.log
    (call,), (result,) = session.kinds(EventKind.TOOL_CALL), session.kinds(EventKind.TOOL_RESULT)
    assert "./evaluate" in call.text and result.text == "all cases passed\n"
    assert "all cases passed" in session.kinds(EventKind.MESSAGE)[-1].text
    assert session.tokens == Tokens(200, 40, 80)


def test_codex_says_why_it_cannot_work(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    with OpenAIResponsesStandIn([Fault(429, "insufficient_quota", "You exceeded your current quota.")]) as api:
        session = start("codex", place, codex_environment(api), model="gpt-5.5")
    assert session.exit_code == 1 and "Quota exceeded" in session.error
    assert session.tokens == Tokens()
