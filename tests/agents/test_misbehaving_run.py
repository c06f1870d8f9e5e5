"""A run in which most agents misbehave: each trial ends as designed, nothing leaks, and the run goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arena.agents.base import AgentSpec
from arena.results.record import Trial
from arena.results.session import Ending, Session
from arena.results.transcripts import transcript_path
from arena.results.verdict import Status
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.service.judge_pool import JudgePool
from tests.agents.scripted_run import SPEEDS, Counting
from tests.fakes import Timing, planned
from tests.task.corpus.folders import HELDOUT, write_task

SCRIPTS = Path(__file__).parent / "box" / "misbehaving"
SECRET = "sk-test-" + "5e0c71b9" * 4
LEAKING = """
import base64, os, pathlib
key = os.environ["MY_API_KEY"]
print("my key is", key, base64.b64encode(b"x" + key.encode()).decode(), key[::-1], key.encode().hex())
pathlib.Path("kernel.py").write_text("# fast " + key + " fast")
os.system("./evaluate")
"""
HONEST = "import pathlib; pathlib.Path('kernel.py').write_text('# fast')"
DEFINITION = """\
name: leaking
about: Prints its credential.
command: [unset]
prompt: file
events: text
credentials: [MY_API_KEY]
"""


def script(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", (SCRIPTS / name).read_text(encoding="utf-8"), *arguments)


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Trial]:
    """One trial of each agent, side by side."""
    monkeypatch.setenv("MY_API_KEY", SECRET)
    tasks = tmp_path / "tasks"
    task = write_task(tasks, heldout=f"# canary-{'0' * 32}\n{HELDOUT}")
    (tmp_path / "leaking.yaml").write_text(DEFINITION, encoding="utf-8")
    remove = (SCRIPTS / "deletes_everything.sh").read_text(encoding="utf-8")
    wanted = (str(task / "heldout.yaml"), str(task / "expert.py"), str(tmp_path / "runs"))
    agents = (
        AgentSpec("never_stops", "command", command=script("never_stops.py"), limits={"wall_clock_s": 4}),
        AgentSpec(
            "fills", "command", command=script("fills_the_disk.py", "300000000"), limits={"disk_bytes": 50_000_000}
        ),
        AgentSpec("deletes", "command", command=("sh", "-c", remove)),
        AgentSpec("daemon", "command", command=script("leaves_a_daemon.py")),
        AgentSpec("searches", "command", command=script("searches.py", *wanted)),
        AgentSpec("leaks", str(tmp_path / "leaking.yaml"), command=(sys.executable, "-c", LEAKING)),
        AgentSpec("honest", "command", command=(sys.executable, "-c", HONEST)),
    )
    config = RunConfig("bad", ("*",), agents, attempts=1, jobs=2)
    speeds = {**SPEEDS, "flag": 1.0}
    run = runner.run(planned(config, tasks), tmp_path / "runs" / "bad", JudgePool([Timing(speeds=speeds)]), Counting())
    return {trial.agent: trial for trial in run.trials}


def session(trial: Trial) -> Session:
    assert trial.session is not None, trial.detail
    return trial.session


@pytest.mark.slow
def test_each_ends_as_designed(trials: dict[str, Trial], tmp_path: Path) -> None:
    endings = {name: session(trial).ending for name, trial in trials.items()}
    assert endings == {
        "never_stops": Ending.WALL_CLOCK,
        "fills": Ending.DISK,
        "deletes": endings["deletes"],
        "daemon": Ending.FINISHED,
        "searches": Ending.FINISHED,
        "leaks": Ending.FINISHED,
        "honest": Ending.FINISHED,
    }
    assert trials["honest"].status is trials["leaks"].status is Status.PASSED
    for name in ("never_stops", "fills", "deletes", "daemon", "searches"):
        assert trials[name].status is Status.NOTHING_SUBMITTED, name
    assert "no kernel.py was left" in trials["deletes"].detail
    said = (transcript_path(tmp_path / "runs" / "bad", *trials["searches"].key) / "raw.jsonl").read_text()
    assert '{\\"seen\\": {}}' in said, said
    kept = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    forms = (SECRET.encode(), SECRET[::-1].encode(), SECRET.encode().hex().encode())
    assert kept and not [path for path in kept if any(form in path.read_bytes() for form in forms)]
    assert records.read_run(tmp_path / "runs" / "bad").missing == 0
