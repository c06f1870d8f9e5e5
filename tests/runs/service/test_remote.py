"""Judges on other machines, over a transport that stays in this process: what travels, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from arena.agents.base import AgentSpec
from arena.errors import InfrastructureError, JudgeLost, JudgeUnavailable
from arena.judge.compile.refusals import refusal
from arena.judge.process.messages import Progress
from arena.results.environment import Environment
from arena.results.record import Evaluation
from arena.results.session import KERNEL_LIMIT_BYTES
from arena.results.verdict import Stage, Status, Verdict
from arena.runs import records, runner
from arena.runs.config import RunConfig
from arena.runs.service import remote
from arena.runs.service.judge_pool import Evaluator, JudgePool
from arena.runs.service.remote import RemoteEvaluator, RemoteJudge, difference, joined, lacks, this_machine
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from arena.task.options import Options
from arena.version import code_hash
from tests.fakes import HERE, FakeEvaluator, planned
from tests.task.corpus.folders import HELDOUT, TASK, write_task

CLOSED = replace(HERE, isolation="session+network+mount; compilers bubblewrap", versions={"torch": "2.13", "hip": "7"})
SCALE, TWICE = "triton2triton/suite/scale", "triton2triton/suite/twice"


@dataclass
class InProcess:
    """Hands bytes over, and can lose or change them on the way."""

    judge: RemoteJudge
    where: str = "node-7"
    changed: Callable[[bytes], bytes] = lambda data: data
    requests: list[bytes] = field(default_factory=list)
    killed: bool = False

    def ask(self, request: bytes, on_progress: Callable[[bytes], None]) -> bytes:
        if self.killed:
            raise JudgeLost("it is gone")
        self.requests.append(request)
        return self.changed(self.judge.answer(request, on_progress))

    def kill(self) -> None:
        self.killed = True


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    root = tmp_path / "tasks"
    write_task(root, SCALE)
    write_task(root, TWICE, task=TASK.replace("name: scale", "name: twice"))
    return root


@pytest.fixture
def task(tasks: Path) -> Task:
    return load_task(tasks / SCALE)


@pytest.fixture
def there(tasks: Path) -> FakeEvaluator:
    return FakeEvaluator(environment=CLOSED)


def connected(judge: Evaluator, tasks: Path) -> tuple[RemoteEvaluator, InProcess]:
    transport = InProcess(RemoteJudge(judge, open_corpora([tasks])))
    return joined(transport, hashes(tasks)), transport


def hashes(tasks: Path) -> dict[str, str]:
    corpora = open_corpora([tasks])
    return {name: corpora.load(name).content_hash for name in corpora.ids}


def kernel(folder: Path, text: str = "# right") -> Path:
    path = folder / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_kernel_and_held_out_cases_travel_as_bytes(
    there: FakeEvaluator, tasks: Path, task: Task, tmp_path: Path
) -> None:
    evaluator, transport = connected(there, tasks)
    fresh = tmp_path / "fresh.yaml"
    fresh.write_text(HELDOUT.replace("M: 3", "M: 5"), encoding="utf-8")
    steps: list[Progress] = []
    found = evaluator.evaluate(task.path, kernel(tmp_path, "# WRONG"), Options(seeds=7), steps.append, fresh)
    assert (found.status, found.task) == (Status.WRONG_RESULT, SCALE)
    assert found.task_hash == load_task(task.path, fresh).content_hash != task.content_hash
    assert steps == [Progress("correctness", 1, 1)] and there.options == [Options(seeds=7)]
    (name, text, heldout), *_ = there.seen
    assert (name, text) == ("scale", "# WRONG") and heldout is not None and heldout != fresh
    assert not heldout.exists()  # the scratch folder there is gone
    assert str(tmp_path).encode() not in b"".join(transport.requests)
    assert evaluator.environment == CLOSED


def test_a_judge_on_the_machine_of_the_agents_says_so(there: FakeEvaluator, tasks: Path) -> None:
    """A cluster may be of this machine, where an agent that goes on would disturb what is measured."""
    transport = InProcess(RemoteJudge(there, open_corpora([tasks])))
    assert joined(transport, hashes(tasks)).shares_machine
    transport.changed = lambda data: data.replace(this_machine().encode(), b"another")
    assert not joined(transport, hashes(tasks)).shares_machine


def test_the_same_records_as_with_a_local_judge(there: FakeEvaluator, tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / SCALE).mkdir(parents=True)
    (tmp_path / "mine" / TWICE).mkdir(parents=True)
    (tmp_path / "mine" / SCALE / "kernel.py").write_text("# WRONG", encoding="utf-8")
    (tmp_path / "mine" / TWICE / "kernel.py").write_bytes(b"#" * (KERNEL_LIMIT_BYTES - 1) + b"\n")
    agents = (AgentSpec("noop", "noop"), AgentSpec("mine", "replay", tmp_path / "mine"))
    plan = planned(RunConfig(name="demo", tasks=("*",), agents=agents, path="demo.yaml", attempts=2), tasks)
    local = runner.run(plan, tmp_path / "local", JudgePool([there]))
    far = runner.run(plan, tmp_path / "far", JudgePool([connected(there, tasks)[0], connected(there, tasks)[0]]))
    assert len(far.trials) == 8 and comparable(local) == comparable(far)


def comparable(run: records.RunRecords) -> list[object]:
    return [replace(trial, started_at="", seconds=0.0) for trial in run.trials]


def test_a_kernel_that_is_too_large_is_refused_without_being_sent(
    there: FakeEvaluator, tasks: Path, task: Task, tmp_path: Path
) -> None:
    evaluator, transport = connected(there, tasks)
    large = kernel(tmp_path, "#" * (KERNEL_LIMIT_BYTES + 1))
    found = evaluator.evaluate(task.path, large, Options(), lambda step: None)
    assert found.status is Status.RULE_VIOLATION and there.seen == [] and len(transport.requests) == 1
    assert found.failure is not None and f"{KERNEL_LIMIT_BYTES + 1} bytes" in found.failure.detail


def test_the_baseline_is_checked_on_cases_that_were_sent(there: FakeEvaluator, tasks: Path, task: Task) -> None:
    evaluator, _ = connected(there, tasks)
    own = evaluator.check_baseline(task.path, None, Options())
    assert own == evaluator.check_baseline(task.path, task.path / "heldout.yaml", Options()) and len(own) == 5


def test_another_corpus_is_refused_with_both_hashes(there: FakeEvaluator, tasks: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "tasks"
    write_task(other, SCALE, task=TASK.replace("alpha, plus", "beta, plus"))
    mine, theirs = hashes(tasks)[SCALE], hashes(other)[SCALE]
    transport = InProcess(RemoteJudge(there, open_corpora([other])))
    with pytest.raises(JudgeLost, match=f"node-7: {SCALE} differs: .*{theirs[:16]} there, {mine[:16]} here"):
        joined(transport, {SCALE: mine})
    with pytest.raises(JudgeLost, match=f"{TWICE} is not in its corpus"):
        joined(transport, {TWICE: mine})


def test_a_corpus_that_changes_during_a_run_is_refused(
    there: FakeEvaluator, tasks: Path, task: Task, tmp_path: Path
) -> None:
    copy = tmp_path / "copy" / "tasks"
    for name in (SCALE, TWICE):
        write_task(copy, name, task=TASK.replace("name: scale", f"name: {name.rsplit('/', 1)[1]}"))
    evaluator, _ = connected(there, copy)
    (copy / SCALE / "reference.py").write_text("def reference(x, alpha):\n    return x\n", encoding="utf-8")
    with pytest.raises(JudgeLost, match="content hash"):
        evaluator.evaluate(task.path, kernel(tmp_path), Options(), lambda step: None)
    assert there.seen == []


def test_other_code_is_refused(there: FakeEvaluator, tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = InProcess(RemoteJudge(there, open_corpora([tasks])))
    real = code_hash()
    hashes_in_turn = iter(["f" * 64, real, real])  # the runner's, then the judge's
    monkeypatch.setattr(remote, "code_hash", lambda: next(hashes_in_turn))
    with pytest.raises(JudgeLost, match=rf"arena differs: .*\(code {real[:16]}\) there, .*\(code f{{16}}\) here"):
        joined(transport, {})


@pytest.mark.parametrize(
    ("level", "lacking"),
    [
        ("session+mount; compilers network", "network"),
        ("session+network+basic", "mount"),
        ("session; compilers bubblewrap+network+mount", "network and mount"),
    ],
)
def test_a_sandbox_that_leaves_a_way_to_the_cluster_is_refused(tasks: Path, level: str, lacking: str) -> None:
    judge = FakeEvaluator(environment=replace(CLOSED, isolation=level))
    with pytest.raises(JudgeLost, match=f"its sandbox lacks {lacking} "):
        joined(InProcess(RemoteJudge(judge, open_corpora([tasks]))), {})
    assert lacks("session+network+mount+read-only; compilers none") == ""
    assert lacks("session+shared-network+mount; compilers none") == ""
    assert lacks("session+mount+seccomp+no-inet; compilers none") == "network"


def test_what_two_judges_of_one_run_may_not_differ_in() -> None:
    assert difference(CLOSED, CLOSED) == ""
    slower = replace(CLOSED, device=replace(CLOSED.device, name="another"))
    assert difference(CLOSED, slower) == "device another instead of a processor"
    older = replace(CLOSED, versions={"torch": "2.12"})
    assert difference(CLOSED, older) == "hip missing instead of 7, torch 2.12 instead of 2.13"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{}",
        b'{"type":"Joined"}',
        b'{"type":"BaselineChecked","cases":{}}',
        b'{"type":"Progress","stage":"","done":0,"total":0}',
        b"\x80\x04K\x01.",  # a pickle
        b'{"type":"Unfit","reason":"","more":1}',
        b"[" * 100_000,
        b" " * (17 << 20),
    ],
)
def test_what_is_no_answer_loses_the_judge(
    there: FakeEvaluator, tasks: Path, task: Task, tmp_path: Path, said: bytes
) -> None:
    evaluator, transport = connected(there, tasks)
    transport.changed = lambda data: said
    with pytest.raises(JudgeLost, match="the judge on node-7: "):
        evaluator.evaluate(task.path, kernel(tmp_path), Options(), lambda step: None)


def test_an_answer_about_another_kernel_loses_the_judge(
    there: FakeEvaluator, tasks: Path, task: Task, tmp_path: Path
) -> None:
    evaluator, transport = connected(there, tasks)
    with pytest.raises(JudgeLost, match="another kernel or task"):
        transport.changed = lambda data: data.replace(b'"candidate_hash":"', b'"candidate_hash":"0')
        evaluator.evaluate(task.path, kernel(tmp_path), Options(), lambda step: None)
    with pytest.raises(JudgeLost, match="another kernel or task"):
        transport.changed = lambda data: data.replace(SCALE.encode(), TWICE.encode())
        evaluator.evaluate(task.path, kernel(tmp_path), Options(), lambda step: None)


@pytest.mark.parametrize("request_", [b"", b"{}", b'{"type":"EvaluateKernel","task":"../.."}', b"\x80\x04K\x01."])
def test_what_is_no_request_gets_an_answer(there: FakeEvaluator, tasks: Path, request_: bytes) -> None:
    answer = RemoteJudge(there, open_corpora([tasks])).answer(request_, lambda step: None)
    assert msgspec.json.decode(answer)["type"] == "Unfit"


def test_a_path_is_no_task(there: FakeEvaluator, tasks: Path, task: Task) -> None:
    judge = RemoteJudge(there, open_corpora([tasks]))
    request = remote.EvaluateKernel(str(task.path), task.content_hash, b"# mine", Options())
    answer = msgspec.json.decode(judge.answer(msgspec.json.encode(request), lambda step: None))
    assert answer["type"] == "Unfit" and "not in its corpus" in answer["reason"] and there.seen == []


class NeverStarts(FakeEvaluator):
    """A judge whose device is gone."""

    def begin(self) -> None:
        raise JudgeUnavailable("the judge did not start: no device")


class Bug(FakeEvaluator):
    """A judge with a fault of its own."""

    def begin(self) -> None:
        raise ZeroDivisionError("in the harness")


def test_a_harness_that_fails_there_is_told_from_one_that_is_gone(tasks: Path, task: Task, tmp_path: Path) -> None:
    def ask(judge: FakeEvaluator) -> Evaluation:
        return connected(judge, tasks)[0].evaluate(task.path, kernel(tmp_path), Options(), lambda step: None)

    with pytest.raises(InfrastructureError, match="fell over") as failed:
        ask(FakeEvaluator(environment=CLOSED, failing={"scale"}))
    assert not isinstance(failed.value, JudgeLost)
    with pytest.raises(InfrastructureError, match="ZeroDivisionError") as failed:
        ask(Bug(environment=CLOSED))
    assert not isinstance(failed.value, JudgeLost)
    with pytest.raises(JudgeLost, match="did not start"):
        ask(NeverStarts(environment=CLOSED))


def test_code_hash_covers_what_decides_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "arena"
    for name in ("judge/rules.py", "data/tasks/a.yaml", "judge/__pycache__/rules.pyc"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("1", encoding="utf-8")
    monkeypatch.setattr("arena.version.PACKAGE", package)
    code_hash.cache_clear()
    before = code_hash()
    (package / "data/tasks/a.yaml").write_text("2", encoding="utf-8")
    (package / "judge/__pycache__/rules.pyc").write_text("2", encoding="utf-8")
    code_hash.cache_clear()
    assert code_hash() == before
    (package / "judge/rules.py").write_text("2", encoding="utf-8")
    code_hash.cache_clear()
    assert code_hash() != before
    code_hash.cache_clear()


def test_environments_survive_the_way(there: FakeEvaluator, tasks: Path) -> None:
    rich = replace(CLOSED, device=replace(CLOSED.device, peak_tflops={"float32": 1.5}, driver="580"))
    there.environment = rich
    assert connected(there, tasks)[0].environment == rich


def test_a_task_that_has_become_malformed_ends_no_run(there: FakeEvaluator, tasks: Path, task: Task) -> None:
    evaluator, _ = connected(there, tasks)
    (task.path / "seen.yaml").write_text("- {M: what}\n", encoding="utf-8")
    with pytest.raises(InfrastructureError, match=r"seen\.yaml"):
        evaluator.evaluate(task.path, task.path / "kernel.py", Options(), lambda step: None)


@dataclass
class Compiling:
    """A builder that refuses `REFUSED`, leaves a file of what it compiled, and lets a judge go on at the second."""

    go: threading.Event
    count: int = 0

    def compile(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        environment: Environment,
        heldout: Path | None = None,
        into: Path | None = None,
    ) -> Evaluation | None:
        self.count += 1
        if self.count == 2:
            self.go.set()
        if "REFUSED" in candidate.read_text(encoding="utf-8"):
            verdict = Verdict(Stage.COMPILE, Status.COMPILE_ERROR, "no")
            return refusal(load_task(task), candidate, (), environment, verdict)
        assert into is not None
        (into / "compiled").write_text(candidate.read_text(encoding="utf-8"), encoding="utf-8")
        if "BROKEN" in candidate.read_text(encoding="utf-8"):
            raise InfrastructureError("the builder ended")
        return None

    def kill(self) -> None:
        """Nothing in hand."""


@dataclass
class OneByOne(FakeEvaluator):
    """Waits to go on, measures one at a time, and reads what was compiled."""

    go: threading.Event = field(default_factory=threading.Event)
    alone: threading.Lock = field(default_factory=threading.Lock)
    compiled: list[str] = field(default_factory=list)

    def evaluate(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None],
        heldout: Path | None = None,
        compiled: Path | None = None,
    ) -> Evaluation:
        assert self.alone.acquire(blocking=False) and compiled is not None
        try:
            assert self.go.wait(10)
            self.compiled.append((compiled / "compiled").read_text(encoding="utf-8"))
            return super().evaluate(task, candidate, options, on_progress, heldout, compiled)
        finally:
            self.alone.release()


def test_one_kernel_is_compiled_there_while_another_is_measured(tasks: Path, task: Task, tmp_path: Path) -> None:
    judge = OneByOne(environment=CLOSED)
    there = RemoteJudge(judge, open_corpora([tasks]), Compiling(judge.go))
    evaluator = joined(InProcess(there), hashes(tasks))

    def status(text: str) -> Status:
        folder = tmp_path / text
        folder.mkdir()
        return evaluator.evaluate(task.path, kernel(folder, f"# {text}"), Options(), lambda step: None).status

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(status, ("first", "WRONG", "REFUSED", "BROKEN"))) == [
            *(Status.PASSED, Status.WRONG_RESULT, Status.COMPILE_ERROR, Status.PASSED)
        ]
    assert sorted(judge.compiled) == ["# BROKEN", "# WRONG", "# first"]
