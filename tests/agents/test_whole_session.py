"""Real CLIs through everything: box, proxy, `./evaluate`, a real judge, record, transcript, page; scripted models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from arena.agents.base import AgentSpec
from arena.judge.process.client import JudgeClient
from arena.reports.pages import write_report
from arena.results.record import Trial
from arena.results.session import Ending, EventKind
from arena.results.transcripts import read_transcript, transcript_path
from arena.results.verdict import Status
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.service.judge_pool import JudgePool
from tests.agents.clis import cli
from tests.agents.minis import mini_folder
from tests.agents.scripted_run import Counting
from tests.agents.standins.anthropic import AnthropicStandIn
from tests.agents.standins.base import Call, Seen, StandIn, Step, Turn
from tests.agents.standins.chat_completions import ChatCompletionsStandIn
from tests.agents.standins.openai_responses import OpenAIResponsesStandIn

pytestmark = [pytest.mark.timeout(450)]

TASK = "triton2triton/fundamentals/add"
SECRET = "sk-test-" + "8f3a91c2d7" * 3
BREAK = "sed -i 's/(x + y)/(x - y)/' kernel.py"
MEND = "sed -i 's/(x - y)/(y + x)/' kernel.py"


@dataclass(frozen=True)
class Kit:
    """How one CLI is driven: its stand-in, its shell tool, the last thing it does, its variables."""

    kind: str
    folder: Callable[[], Path]
    stand_in: type[StandIn]
    shell: Callable[[str], Call]
    ends: tuple[Call, ...]
    variables: Callable[[StandIn], dict[str, str]]
    model: str = ""


def installed(name: str) -> Callable[[], Path]:
    return lambda: cli(name).parent


KITS = {
    kit.kind: kit
    for kit in (
        Kit(
            "claude_code",
            installed("claude_code"),
            AnthropicStandIn,
            lambda command: Call("Bash", {"command": command, "description": "Work"}),
            (),
            lambda api: {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": SECRET},
        ),
        Kit(
            "codex",
            installed("codex"),
            OpenAIResponsesStandIn,
            lambda command: Call("exec_command", {"cmd": command}),
            (),
            lambda api: {"OPENAI_BASE_URL": f"{api.url}/v1", "OPENAI_API_KEY": SECRET},
            "gpt-5.5",
        ),
        Kit(
            "mini_swe_agent",
            mini_folder,
            ChatCompletionsStandIn,
            lambda command: Call("bash", {"command": command}),
            (Call("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),),
            lambda api: {"OPENAI_BASE_URL": f"{api.url}/v1", "OPENAI_API_KEY": SECRET},
            "openai/some-model",
        ),
    )
}


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest) -> Kit:
    return KITS[request.param]


def story(kit: Kit) -> list[Step]:
    """Read, make a mistake, see it, mend it, leak, and end."""

    def mend(seen: Seen) -> Turn:
        assert any("wrong_result" in result for result in seen.results), seen.results
        return Turn("I mend it.", (kit.shell(MEND),))

    def end(seen: Seen) -> Turn:
        assert any("passed" in result for result in seen.results), seen.results
        return Turn("What do I hold?", (kit.shell("env | base64 -w0; env"),))

    return [
        Turn("I read the task.", (kit.shell("cat TASK.md && ls"),)),
        Turn("I edit.", (kit.shell(BREAK),)),
        Turn("I evaluate.", (kit.shell("./evaluate"),)),
        mend,
        Turn("I evaluate again.", (kit.shell("./evaluate"),)),
        end,
        Turn("It adds the other way round.", kit.ends),
    ]


@pytest.fixture
def judge_pool(cpu_judge: JudgeClient) -> JudgePool:
    return JudgePool([cpu_judge])


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, kit: Kit) -> Iterator[Callable[[StandIn], None]]:
    """Sets the variables that a person would have set."""
    folder = kit.folder()

    def put(api: StandIn) -> None:
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        for name, value in kit.variables(api).items():
            monkeypatch.setenv(name, value)

    yield put


def work(
    kit: Kit,
    script: Sequence[Step],
    judge_pool: JudgePool,
    folder: Path,
    put: Callable[[StandIn], None],
    **limits: float,
) -> Trial:
    with ExitStack() as stack:
        api = stack.enter_context(kit.stand_in(list(script)))
        put(api)
        spec = AgentSpec(kit.kind, kit.kind, model=kit.model, limits={"wall_clock_s": 120, "evaluations": 5, **limits})
        config = RunConfig("e2e", (TASK,), (spec,), attempts=1, evaluation={"max_work": 1e5, "seeds": 1})
        run = runner.run(runner.plan_run(config), folder, judge_pool, Counting())
    (trial,) = run.trials
    return trial


@pytest.mark.slow(but=["claude_code"])
def test_a_session(
    kit: Kit,
    judge_pool: JudgePool,
    tmp_path: Path,
    settings: Callable[[StandIn], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "runs" / "e2e"
    trial = work(kit, story(kit), judge_pool, folder, settings)
    session = trial.session
    assert session is not None and session.ending is Ending.FINISHED, (trial.detail, session)
    assert trial.status is Status.PASSED and trial.evaluation is not None
    assert [one.status for one in session.evaluations] == [Status.WRONG_RESULT, Status.PASSED]
    assert session.tokens.total == 7 * 120 and session.refused == 0
    assert session.version and "bubblewrap" in session.isolation
    assert session.paused_s > 0 and session.active_s > 0
    transcript = read_transcript(transcript_path(folder, *trial.key))
    said = [event.text for event in transcript.events if event.kind is EventKind.MESSAGE]
    assert "I mend it." in said and "It adds the other way round." in said[-1]
    assert b"(y + x)" in transcript.evaluations[1].kernel
    report = write_report([records.read_run(folder)], tmp_path / "report")
    (page,) = (tmp_path / "report").rglob("transcripts/**/*.html")
    text = page.read_text(encoding="utf-8")
    assert "wrong_result" in text and "I mend it." in text and report.index.is_file()
    (task,) = (report.index.parent / "tasks").glob("*.html")
    assert f"../{page.relative_to(report.index.parent).as_posix()}" in task.read_text(encoding="utf-8")
    names = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(names) > 10 and not [path for path in names if SECRET.encode() in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize("kit", ["claude_code"], indirect=True)
def test_the_budget_is_enforced(
    kit: Kit, judge_pool: JudgePool, tmp_path: Path, settings: Callable[[StandIn], None]
) -> None:
    """One evaluation is all there is, and the time is up before an agent that goes on for ever has ended."""
    again = [Turn("Again.", (kit.shell("./evaluate; sleep 3"),))]
    trial = work(kit, again, judge_pool, tmp_path / "e2e", settings, evaluations=1, wall_clock_s=8)
    session = trial.session
    assert session is not None and session.ending is Ending.WALL_CLOCK, (trial.detail, session)
    assert len(session.evaluations) == 1 and session.refused >= 1
    assert 8 <= session.active_s < 12
    assert trial.status is Status.PASSED
