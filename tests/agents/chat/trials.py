"""Trials of a model against a stand-in and a fake judge: what every test of the agent begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arena.agents.base import AgentSpec
from arena.results.record import Trial
from arena.results.session import Event, EventKind, Session
from arena.results.transcripts import Transcript, find_transcripts, read_transcript
from arena.runs import runner
from arena.runs.config import RunConfig
from arena.runs.service.judge_pool import JudgePool
from tests.agents.chat.standin import Endpoint
from tests.fakes import Timing, planned
from tests.task.corpus.folders import write_task

KEY = "sk-live-4f9a8b7c6d5e4f3a2b1c"
SPEEDS = {"...": 1.0, "slow": 0.5, "fast": 2.0, "faster": 4.0}
DEFINITION = "name: mine\nabout: A test.\nbase_url: {url}\nmodel: asked-for\napi_key_env: TEST_MODEL_KEY\n"


def kernel(word: str) -> str:
    """A kernel that is as fast as its word says, or WRONG."""
    return f"def scale(x, bias, alpha, flag, y):\n    pass  # {word}\n"


def coded(word: str) -> str:
    """An answer with that kernel."""
    return f"Here it is.\n\n```python\n{kernel(word)}```\n\nDone."


@dataclass(frozen=True)
class Tried:
    """A trial, its folder, and its transcript, where there is one."""

    trial: Trial
    folder: Path
    transcript: Transcript | None

    @property
    def session(self) -> Session:
        assert self.trial.session is not None, self.trial.detail
        return self.trial.session

    @property
    def events(self) -> tuple[Event, ...]:
        assert self.transcript is not None
        return self.transcript.events

    @property
    def notes(self) -> str:
        return "\n".join(event.text for event in self.events if event.kind is EventKind.NOTE)

    @property
    def submitted(self) -> str:
        (path,) = (self.folder / "submissions").rglob("kernel.py")
        return path.read_text()


def tried(
    place: Path,
    endpoint: Endpoint,
    fields: str = "",
    limits: Mapping[str, float] | None = None,
    attempts: int = 1,
    judges: JudgePool | None = None,
) -> Tried:
    """Trials of a model on the task `scale`, and the last of them; `fields` are further lines of its definition."""
    definition = place / "mine.yaml"
    retries = "" if "retries" in fields else "retries: 2\n"
    definition.write_text(DEFINITION.format(url=endpoint.url) + retries + fields)
    write_task(place / "tasks")
    given = {"wall_clock_s": 120.0, **(limits or {})}
    config = RunConfig("one", ("*",), (AgentSpec("mine", str(definition), limits=given),), attempts=attempts)
    folder = place / "runs" / "one"
    pool = judges or JudgePool([Timing(speeds=SPEEDS)])
    trial = runner.run(planned(config, place / "tasks"), folder, pool).trials[-1]
    found = find_transcripts(folder)
    return Tried(trial, folder, read_transcript(found[-1]) if found else None)
