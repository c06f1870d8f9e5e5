"""Executors by name, what is refused before Ray is imported, and the actor's surroundings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.errors import InfrastructureError, UsageError
from arena.judge.compile.builder_client import BuilderClient
from arena.judge.process.client import JudgeClient
from arena.runs.executors import executor
from arena.runs.executors.base import JudgesWanted
from arena.runs.executors.local import LocalExecutor
from arena.runs.executors.ray_cluster import require_token
from arena.runs.executors.ray_judge import ANSWER, PROGRESS, JudgeActor
from arena.runs.records import read_run
from arena.runs.service.judge_pool import Evaluator, JudgePool, KernelBuilder
from arena.task.corpus.task_folder import TASKS, hidden_from_candidates, load_task
from arena.task.options import Options
from tests.agents.box.boxes import wait_until
from tests.fakes import HERE, FakeEvaluator
from tests.task.corpus.folders import TASK, write_task


def test_local_is_an_executor_that_needs_no_ray() -> None:
    where = executor("local")
    assert isinstance(where, LocalExecutor)
    assert where.describe(JudgesWanted("cpu")) == "a judge"
    assert where.describe(JudgesWanted("cuda", (0, 1))) == "2 judges"
    code = "import sys; from arena.runs.executors import executor; executor('local'); print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


def test_unknown_names_and_useless_options_are_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown executor 'slurm'; expected one of: local, ray"):
        executor("slurm")
    with pytest.raises(UsageError, match="of use with --executor ray only"):
        executor("local", address="10.0.0.1:6379")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.extras.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'unseen-arena\[ray\]'"):
        executor("ray")


@pytest.mark.parametrize("mode", ["", "disabled", "token"])
def test_a_cluster_elsewhere_needs_a_token(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", mode)
    for local in ("", "127.0.0.1:6379", "localhost:6379"):
        require_token(local)
    for elsewhere in ("10.0.0.1:6379", "auto", "head.cluster:6379"):
        if mode == "token":
            require_token(elsewhere)
        else:
            with pytest.raises(UsageError, match="RAY_AUTH_MODE=token"):
                require_token(elsewhere)
    with pytest.raises(UsageError, match="Ray's client is not supported"):
        require_token("ray://127.0.0.1:10001")


class Quick(JudgeActor):
    """Keeps the environment that a judge would start in."""

    seen: ClassVar[dict[str, str]] = {}

    def start_judge(self) -> Evaluator:
        Quick.seen = dict(os.environ)
        return FakeEvaluator()


def test_a_judge_gets_neither_token_nor_thread_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Path("/proc/self/environ").read_bytes()
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    list(Quick("cpu", []).ask(b"{}"))
    assert "RAY_AUTH_TOKEN" not in Quick.seen and "RAY_AUTH_TOKEN_PATH" not in Quick.seen
    assert ("OMP_NUM_THREADS" in Quick.seen) is (b"\0OMP_NUM_THREADS=" in b"\0" + given)
    assert os.environ["RAY_AUTH_TOKEN"] == os.environ["OMP_NUM_THREADS"] == "1"


class Broken:
    """In place of a judge: raises, or never says anything."""

    def __init__(self, problem: BaseException | None) -> None:
        self._problem = problem

    def answer(self, request: bytes, on_progress: Callable[[bytes], None]) -> bytes:
        if self._problem is not None:
            raise self._problem
        threading.Event().wait()
        return b""


@pytest.mark.parametrize(
    ("problem", "said"), [(ValueError("odd"), "odd"), (SystemExit("end"), "end"), (None, "said nothing for 0 s")]
)
def test_whoever_asks_an_actor_gets_an_answer(problem: BaseException | None, said: str) -> None:
    """A thread that had ended left its asker waiting."""
    actor: Any = Quick("cpu", [])
    actor.judge, actor.silent_s = Broken(problem), 0.2
    (answer,) = actor.ask(b"{}")
    assert answer.startswith(ANSWER) and said in answer.decode() and b"Unfit" in answer


class Stepping:
    """In place of a judge: a hundred steps in a moment, and two after a pause."""

    def answer(self, request: bytes, on_progress: Callable[[bytes], None]) -> bytes:
        for number in range(100):
            on_progress(str(number).encode())
        time.sleep(1.0)
        on_progress(b"later")
        on_progress(b"and at once")
        return b"done"


def test_an_actor_passes_on_few_steps() -> None:
    """Each costs the runner processor time, and 64 judges take thousands in a second."""
    actor: Any = Quick("cpu", [])
    actor.judge, actor.step_s = Stepping(), 0.5
    assert list(actor.ask(b"{}")) == [PROGRESS + b"0", PROGRESS + b"later", ANSWER + b"done"]


class Ending(JudgeClient):
    """A judge that ends when it has noted its environment: each question goes to another one."""

    module = "tests.runs.executors.noting_judge"


class Restarting(JudgeActor):
    """Has such a judge, and a real builder."""

    def start_judge(self) -> Evaluator:
        return Ending(self.platform)

    def start_builder(self) -> KernelBuilder:
        return BuilderClient()


def test_what_is_started_in_place_of_a_failed_judge_or_builder_gets_no_token_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates of a second judge reached Ray's socket, whose folder was hidden from those of the first."""
    notes, hidden = tmp_path / "notes", str(tmp_path / "ray")
    monkeypatch.setattr("arena.runs.executors.ray_judge._ray_folder", lambda: hidden)
    monkeypatch.delenv("ARENA_HIDE", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setenv("TEST_NOTES", str(notes))
    actor = Restarting("cpu", [])
    list(actor.ask(b"{}"))
    judge, builder = actor._client, actor._builder
    assert isinstance(judge, Ending) and isinstance(builder, BuilderClient)
    try:
        os.waitid(os.P_PID, judge.pid, os.WEXITED | os.WNOWAIT)  # or else the first question still goes to it
        for _ in range(2):
            with pytest.raises(InfrastructureError):
                judge.check_baseline(tmp_path, None, Options())
        first = builder.pid
        with pytest.raises(InfrastructureError):
            builder.compile(tmp_path, tmp_path, Options(), HERE)
        assert builder.pid != first
        environment = Path(f"/proc/{builder.pid}/environ")
        wait_until(lambda: environment.read_bytes() != b"")  # empty while the kernel exchanges the program
        started = environment.read_bytes().decode().split("\0")
        # The first judge and the one in place of it each time.
        found = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]
        assert len(found) == 3
    finally:
        actor.close()
    found.append(dict(line.split("=", 1) for line in started if line))
    assert all("RAY_AUTH_TOKEN" not in one and one["ARENA_HIDE"] == hidden for one in found)


def test_folders_of_services_can_be_hidden_from_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task(write_task(tmp_path / "tasks"))
    before = hidden_from_candidates(task)
    assert before[:2] == (tmp_path / "tasks", TASKS)
    (tmp_path / "one").mkdir()
    monkeypatch.setenv("ARENA_HIDE", f"{tmp_path}/one:{tmp_path}/none:")
    assert hidden_from_candidates(task) == (*before, tmp_path / "one")


def test_a_node_uses_its_own_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ids(folders: list[str]) -> tuple[str, ...]:
        actor = Quick("cpu", folders)
        list(actor.ask(b"{}"))
        assert actor.judge is not None
        return actor.judge.corpora.ids

    monkeypatch.delenv("ARENA_TASKS_DIR", raising=False)
    for name in ("own", "runs", "more"):
        write_task(tmp_path / name, f"triton2triton/suite/{name}")
    assert len(ids([])) > 100
    assert ids([str(tmp_path / "runs")]) == ("triton2triton/suite/runs",)
    monkeypatch.setenv("ARENA_TASKS_DIR", f"{tmp_path}/own:{tmp_path}/more")
    assert ids([str(tmp_path / "runs")]) == ("triton2triton/suite/own", "triton2triton/suite/more")


def test_a_corpus_that_is_missing_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_TASKS_DIR", str(tmp_path / "none"))
    (said,) = Quick("cpu", []).ask(b"{}")
    assert said.startswith(ANSWER)
    answer = msgspec.json.decode(said[1:])
    assert answer["type"] == "Unfit" and "no such folder of tasks" in answer["reason"]


NICE = """
import os, sys
from tests.runs.executors.test_executors import Quick
os.nice(7)
if sys.argv[1:] == ["nobody"] and os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
(said,) = Quick("cpu", []).ask(b"{}")
print(os.getpriority(os.PRIO_PROCESS, 0), said.decode())
"""


def test_a_judge_that_cannot_have_a_usual_priority_is_refused() -> None:
    command = [sys.executable, "-c", NICE, "nobody"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("7 ") and "nice 7: RAY_worker_niceness=0 must be set" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a priority")
def test_the_low_priority_of_an_actor_is_taken_back() -> None:
    done = subprocess.run([sys.executable, "-c", NICE], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("0 ")


def test_a_judge_is_not_the_first_to_be_killed_for_memory() -> None:
    """Ray gives its workers the score that the judge gives a candidate's."""
    code = (
        "from pathlib import Path; from tests.runs.executors.test_executors import Quick\n"
        "score = Path('/proc/self/oom_score_adj'); score.write_text('1000')\n"
        "list(Quick('cpu', []).ask(b'{}')); print(score.read_text())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) <= 0


@dataclass
class Elsewhere:
    """An executor that keeps what was asked of it."""

    wanted: list[JudgesWanted] = field(default_factory=list)

    def describe(self, wanted: JudgesWanted) -> str:
        return f"judges for {len(wanted.tasks)} tasks"

    @contextmanager
    def judges(self, wanted: JudgesWanted) -> Iterator[JudgePool]:
        self.wanted.append(wanted)
        yield JudgePool([FakeEvaluator()])


def test_a_run_asks_its_executor_for_each_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scale", "twice"):
        write_task(tmp_path / "tasks", f"triton2triton/suite/{name}", task=TASK.replace("name: scale", f"name: {name}"))
    config = tmp_path / "mine.yaml"
    text = "tasks: ['*']\ncorpora: [tasks]\nattempts: 1\nagents: [{kind: noop}]\nplatform: {twice: cpu, '*': auto}\n"
    config.write_text(text, encoding="utf-8")
    where, asked = Elsewhere(), []

    def chosen(*arguments: str) -> Elsewhere:
        asked.append(arguments)
        return where

    monkeypatch.setattr("arena.runs.executors.executor", chosen)
    options = ["--executor", "ray", "--address", "10.0.0.1:6379", "--accelerator", "H200", "--devices", "1"]
    done = CliRunner().invoke(app, ["run", str(config), *options, "--runs-dir", str(tmp_path / "runs"), "--no-report"])
    assert done.exit_code == 0, done.output
    assert asked == [("ray", "10.0.0.1:6379", "H200")]
    found = [(one.platform, one.devices, list(one.tasks), one.corpora) for one in where.wanted]
    corpora = (tmp_path / "tasks",)
    assert found == [
        ("auto", (1,), ["triton2triton/suite/scale"], corpora),
        ("cpu", (None,), ["triton2triton/suite/twice"], corpora),
    ]
    assert len(read_run(tmp_path / "runs" / "mine").trials) == 2
