"""The judge as a process: what workers can see, and what happens when a judge dies."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from arena.errors import InfrastructureError
from arena.judge.process import service
from arena.judge.process.client import JudgeClient
from arena.judge.process.control import Request
from arena.judge.process.messages import (
    CheckBaseline,
    Evaluate,
    Expect,
    FromJudge,
    HarnessFailed,
    Hello,
    Progress,
    ToJudge,
)
from arena.processes import scratch
from arena.processes.wire import Channel, ChannelTimeout
from arena.results.record import Evaluation
from arena.results.verdict import Stage, Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options
from tests.reports import builders
from tests.task.corpus.folders import TASK, write_task

RMS_NORM = TASKS / "triton2triton/normalization/rms_norm"
START = RMS_NORM / "kernel.py"
QUICK = Options(heldout=False, seeds=1, max_work=2e4, timing_budget_s=0.02)


@pytest.fixture(scope="module")
def judge_with_secret() -> Iterator[JudgeClient]:
    """A judge with something in its environment that workers must not inherit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARENA_SECRET", "1")
        with JudgeClient("cpu") as judge:
            yield judge


def evaluate(judge: JudgeClient, folder: Path, before_entry: str) -> Evaluation:
    """The starting kernel behind a few lines that look around when the file is loaded."""
    candidate = folder / "kernel.py"
    candidate.write_text(before_entry + "\n" + START.read_text(encoding="utf-8"), encoding="utf-8")
    return judge.evaluate(RMS_NORM, candidate, QUICK)


def test_a_host_cannot_see_the_tasks(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    expect_what_is_seen(cpu_judge, tmp_path, f"import os; assert not os.listdir({str(TASKS)!r})", Status.PASSED)


@pytest.mark.slow
@pytest.mark.parametrize(
    "look",
    [
        pytest.param("import torch.module_that_is_absent", id="a-module-that-is-not-there"),
        pytest.param(
            "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 22), 1)\n"
            "except OSError as problem:\n    assert problem.errno in (13, 101), problem\n"
            "else:\n    raise SystemExit(3)",
            id="network",
        ),
        pytest.param("import os; assert 'ARENA_SECRET' not in os.environ", id="environment"),
        pytest.param("import os; assert os.path.basename(os.getcwd()).startswith('arena-worker-')", id="folder"),
        pytest.param("import os; assert len(os.listdir('/proc/self/fd')) < 12", id="descriptors"),
    ],
)
def test_what_a_host_can_see(tmp_path: Path, judge_with_secret: JudgeClient, look: str) -> None:
    wanted = Status.LOAD_ERROR if "absent" in look else Status.PASSED
    expect_what_is_seen(judge_with_secret, tmp_path, look, wanted)


def expect_what_is_seen(judge: JudgeClient, folder: Path, look: str, wanted: Status) -> None:
    level = judge.environment.isolation
    if "network" not in level or "mount" not in level:
        pytest.skip(f"namespaces are not allowed here: {level}")
    evaluation = evaluate(judge, folder, look)
    assert evaluation.status is wanted, [verdict.detail for verdict in evaluation.verdicts]


@pytest.mark.slow
def test_a_judge_that_dies_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with JudgeClient("cpu") as judge:
        assert evaluate(judge, tmp_path, "").status is Status.PASSED
        os.kill(judge.pid, signal.SIGKILL)
        os.waitid(os.P_PID, judge.pid, os.WEXITED | os.WNOWAIT)
        assert evaluate(judge, tmp_path, "").status is Status.PASSED
        of_judge = scratch.prefix("worker").removesuffix(f"{os.getpid()}-") + f"{judge.pid}-"
        left = Path(tempfile.mkdtemp(prefix=of_judge))
        os.kill(judge.pid, signal.SIGSTOP)
    assert not left.exists(), "the folder of a judge that had to be killed"
    assert "the judge failed with" not in caplog.text, "nothing was asked of it then"


def test_what_was_expected_may_come_or_not(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    compiled, other = tmp_path / "compiled", tmp_path / "other"
    for folder in (compiled, other):
        for split in ("seen", "heldout"):
            (folder / split).mkdir(parents=True)
    pid = cpu_judge.pid
    for announced, into in ((RMS_NORM, compiled), (RMS_NORM, other), (tmp_path / "no-task", compiled)):
        cpu_judge.expect(announced, QUICK, None, into)
        found = cpu_judge.evaluate(RMS_NORM, START, QUICK, compiled=compiled)
        assert found.status is Status.PASSED, found.verdicts
    assert cpu_judge.pid == pid


def test_who_asked_need_not_wait_for_the_end_of_workers() -> None:
    done: list[str] = []
    asked: list[ToJudge] = [Expect(Evaluate("", "", QUICK)), Evaluate("", "", QUICK), CheckBaseline("", "", QUICK)]

    class Judge:
        patience_s = 60.0

        def expect(self, request: Evaluate) -> None:
            raise KeyError("whatever may happen there")

        def answer(self, request: ToJudge, channel: object) -> FromJudge:
            done.append("worked")
            return HarnessFailed("")

        def tidy(self) -> None:
            done.append("tidied")

    class Asking:
        def receive(self, timeout_s: float | None) -> tuple[ToJudge, list[int]]:
            assert timeout_s == Judge.patience_s
            if not asked:
                raise ChannelTimeout
            return asked.pop(0), []

        def has_next(self) -> bool:
            return False

        def send(self, message: FromJudge) -> None:
            done.append("answered")

    for steps in ([], ["worked", "answered", "tidied"], ["tidied", "worked", "answered", "tidied"], ["tidied"]):
        done.clear()
        service._serve_one(cast(service.JudgeService, Judge()), cast(Any, Asking()))
        assert done == steps


def test_of_announcements_that_wait_the_last_one_counts() -> None:
    ours, theirs = (Channel[Any, Any](end, Any) for end in socket.socketpair())
    with closing(ours), closing(theirs):
        assert not theirs.has_next()
        ours.send({})
        assert theirs.has_next()

    class Judge:
        patience_s = None

        def expect(self, request: Evaluate) -> None:
            raise AssertionError("it is replaced by the next")

    class Asking:
        def receive(self, timeout_s: float | None) -> tuple[ToJudge, list[int]]:
            return Expect(Evaluate("", "", QUICK)), []

        def has_next(self) -> bool:
            return True

    service._serve_one(cast(service.JudgeService, Judge()), cast(Any, Asking()))


@pytest.mark.slow
def test_a_device_that_is_not_there_is_said_plainly() -> None:
    with JudgeClient("rocm") as judge, pytest.raises(InfrastructureError, match="no rocm device here"):
        _ = judge.environment


def test_a_candidate_that_fails_leaves_the_next_one_unharmed(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    crash = evaluate(cpu_judge, tmp_path, "import os; os.kill(os.getpid(), 11)")
    assert crash.status is Status.CRASH
    assert "SIGSEGV" in crash.verdicts[-1].detail
    assert evaluate(cpu_judge, tmp_path, "").status is Status.PASSED


def test_gates_stop_at_the_first_failure(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    evaluation = evaluate(cpu_judge, tmp_path, "raise ImportError('no')")
    assert [verdict.stage for verdict in evaluation.verdicts] == [Stage.COMPILE]
    assert {case.candidate for case in evaluation.cases} == {Status.NOT_RUN}


def test_cases_are_those_of_the_task(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    evaluation = evaluate(cpu_judge, tmp_path, "")
    task = load_task(RMS_NORM)
    assert evaluation.task_hash == task.content_hash
    assert {case.case for case in evaluation.cases} <= {case.id for case in task.seen}


@pytest.mark.slow
def test_a_task_that_needs_a_newer_triton_says_so(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    folder = write_task(tmp_path, task=f"least_triton: '99.0'\n{TASK}")
    with pytest.raises(InfrastructureError, match=r"needs Triton 99\.0 or newer"):
        cpu_judge.evaluate_once(Request(folder, folder / "kernel.py", QUICK), lambda progress: None)


def test_a_timing_holds_what_it_was_made_from(tmp_path: Path, cpu_judge: JudgeClient) -> None:
    timings = [case.timing for case in evaluate(cpu_judge, tmp_path, "").cases]
    assert timings
    for timing in timings:
        assert timing is not None
        assert timing.alone_ms is not None, "the baseline before there was a candidate"
        assert 0 < timing.alone_ms.value < 100 * timing.baseline_ms.value
        assert len(timing.rounds) >= 4


def test_a_runner_that_is_gone_before_the_judge_has_started_is_no_error() -> None:
    """It found that a file is missing, and has told its user so: nothing is to be said after that."""

    def fails(platform: object) -> None:
        raise RuntimeError("its template was ended")

    ours, theirs = socket.socketpair()
    ours.close()
    service.main(["cpu", str(theirs.detach())], cast(type[service.JudgeService], fails))


@pytest.mark.slow
def test_a_judge_may_share_an_empty_network_with_its_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does where buffers travel over an abstract Unix socket; the record says so."""
    monkeypatch.setenv("ARENA_NETWORK", "shared")
    with JudgeClient("cpu") as judge:
        if not judge.environment.isolation.startswith("session+shared-network+"):
            pytest.skip(f"this machine allows no network namespace: {judge.environment.isolation}")
        done = evaluate(judge, tmp_path, "import socket")
    assert done.status is Status.PASSED
    assert done.environment.isolation.startswith("session+shared-network+")


def test_a_judge_greets_once_however_many_ask_where_it_is() -> None:
    """Candidates that are handed in while it starts all ask, to compile for its device."""

    class Starting(JudgeClient):
        said = 0

        def _start(self) -> None:
            self._greeted = False

        def _receive(self, timeout_s: float) -> FromJudge:
            time.sleep(0.05)
            self.said += 1
            return Hello(builders.environment()) if self.said == 1 else Progress(Stage.COMPILE, 0, 1)

    judge = Starting("cpu")
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(lambda _: judge.environment.device.name, range(4)))) == 1
    assert judge.said == 1
