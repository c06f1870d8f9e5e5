"""Runs on a Ray cluster of three nodes on this machine: the head, which judges nothing, and two with a judge each."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arena.errors import JudgeUnavailable, UsageError
from arena.results.verdict import Status
from arena.runs import records, runner
from arena.runs.executors.base import JudgesWanted, started, wanted_of
from arena.runs.executors.ray_cluster import RayExecutor, refuses_strangers
from arena.runs.service.judge_pool import JudgePool
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options
from tests.fakes import FakeEvaluator
from tests.runs.executors import fake_actors
from tests.runs.executors.fake_actors import CLOSED, ENVIRONMENT, LOG, FakeExecutor
from tests.task.corpus.folders import TASK, write_task

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
STORE = 80 << 20
CPU_JUDGE = {"arena_judge": 1.0}
RMS_NORM = "triton2triton/normalization/rms_norm"
SCALE, TWICE = "triton2triton/suite/scale", "triton2triton/suite/twice"


class Three:
    """The cluster, whose nodes with judges tests replace."""

    def __init__(self, log: Path) -> None:
        from ray.cluster_utils import Cluster

        self.log = log
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE},
        )
        self.nodes: dict[str, Any] = {}
        self.variables: dict[str, dict[str, str]] = {}

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self, name: str, variables: dict[str, str], resources: dict[str, float] = CPU_JUDGE, gpus: int = 0) -> None:
        """Add a node, by default with a judge of the CPU platform."""
        self.variables[name] = variables
        variables = {"TEST_NODE": name, LOG: str(self.log), **variables}
        before = {key: os.environ.get(key) for key in variables}
        os.environ.update(variables)  # the node's processes inherit them
        try:
            self.nodes[name] = self.cluster.add_node(
                num_cpus=max(1, gpus), num_gpus=gpus, resources=resources, object_store_memory=STORE
            )
        finally:
            for key, value in before.items():
                os.environ.pop(key) if value is None else os.environ.update({key: value})

    def kill(self, name: str) -> None:
        """Kill all processes of a node."""
        self.cluster.remove_node(self.nodes.pop(name), allow_graceful=False)
        self.variables.pop(name)

    def have(self, **nodes: dict[str, str]) -> None:
        """Have exactly these nodes with a judge each; those that are there already are kept."""
        self.leave(nodes)
        for name, variables in nodes.items():
            if name not in self.nodes:
                self.add(name, variables)
        self.cluster.wait_for_nodes()

    def have_gpus(self, *names: str) -> None:
        """Have exactly these nodes with what counts as a GPU; each judge is given three requests at once."""
        self.leave({name: {} for name in names})
        for name in names:
            if name not in self.nodes:
                self.add(name, {}, {"accelerator_type:H200": 1.0}, 1)
        self.cluster.wait_for_nodes()

    def leave(self, nodes: Mapping[str, dict[str, str]]) -> None:
        """Remove every other node, and those that have other variables."""
        for name in [name for name in self.nodes if self.variables[name] != nodes.get(name)]:
            self.cluster.remove_node(self.nodes.pop(name))
            self.variables.pop(name)

    def begun(self) -> list[tuple[str, str]]:
        """Node and Ray job of each evaluation that was begun."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.is_file() else []
        return [(node, job) for node, job in (line.split() for line in lines)]

    def asked(self) -> list[str]:
        """The nodes on which evaluations were begun."""
        return [node for node, _ in self.begun()]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", "5e" * 32)
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("RAY_health_check_period_ms", "1000")  # a dead node is noticed in 3 s, not in 13
        patch.setenv("RAY_health_check_failure_threshold", "3")
        assert "ray" not in sys.modules, "Ray reads its mode of authentication when it is imported"
        three = Three(tmp_path_factory.mktemp("log") / "evaluations")
        try:
            yield three
        finally:
            three.cluster.shutdown()


@pytest.fixture(autouse=True)
def fresh_log(cluster: Three) -> None:
    cluster.log.unlink(missing_ok=True)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    root = tmp_path / "tasks"
    write_task(root, SCALE)
    write_task(root, TWICE, task=TASK.replace("name: scale", "name: twice"))
    (tmp_path / "wrong" / SCALE).mkdir(parents=True)
    (tmp_path / "wrong" / SCALE / "kernel.py").write_text("# WRONG", encoding="utf-8")
    return root


def local(tasks: Path, folder: Path, attempts: int) -> list[object]:
    """What a judge on this machine records."""
    return comparable(on_one(tasks, folder, attempts))


def on_one(tasks: Path, folder: Path, attempts: int) -> records.RunRecords:
    """Run on this machine."""
    return runner.run(fake_actors.plan(tasks, attempts), folder, JudgePool([FakeEvaluator(environment=CLOSED)]))


def comparable(run: records.RunRecords) -> list[object]:
    return [replace(trial, started_at="", seconds=0.0) for trial in run.trials]


def verdicts(run: records.RunRecords) -> list[tuple[object, Status]]:
    """Return what does not depend on the device."""
    return [(trial.key, trial.status) for trial in run.trials]


def wanted(tasks: Path) -> JudgesWanted:
    return JudgesWanted("cpu", corpora=(tasks,), tasks={name: tasks / name for name in (SCALE, TWICE)})


def test_a_gpu_that_dies_with_three_requests_loses_none(cluster: Three, tasks: Path, tmp_path: Path) -> None:
    """Whichever of the three were begun, a dying node's answers are lost with it; each is begun again once."""
    cluster.have_gpus("first-gpu", "second-gpu")

    def kill() -> None:
        while cluster.asked().count("second-gpu") < 2:
            time.sleep(0.02)
        cluster.kill("second-gpu")

    killing = threading.Thread(target=kill)
    killing.start()
    far = fake_actors.run(cluster.address, tasks, tmp_path / "far", 6, "cuda")
    killing.join(60)
    assert verdicts(far) == verdicts(on_one(tasks, tmp_path / "local", 6)) and 18 <= len(cluster.asked()) <= 18 + 3


@pytest.mark.parametrize("platform", ["cuda", "cpu"])
def test_a_run_whose_driver_was_killed_is_resumed(cluster: Three, tasks: Path, tmp_path: Path, platform: str) -> None:
    if platform == "cpu":
        cluster.have(one={}, two={})
    else:
        cluster.have_gpus("first-gpu", "second-gpu")
    folder = tmp_path / "far"
    arguments = [cluster.address, str(tasks), str(folder), "10", platform]
    command = [sys.executable, "-m", "tests.runs.executors.fake_actors", *arguments]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as driver:
        while len(list(folder.glob("trials/*/*.json"))) < 5:
            assert driver.poll() is None
            time.sleep(0.02)
        driver.send_signal(signal.SIGKILL)
    before = {path: path.read_bytes() for path in folder.glob("trials/*/*.json")}
    killed = {job for _, job in cluster.begun()}  # its last evaluation may begin after this
    far = fake_actors.run(cluster.address, tasks, folder, 10, platform)
    assert verdicts(far) == verdicts(on_one(tasks, tmp_path / "local", 10))
    assert {path: path.read_bytes() for path in before} == before
    judged = sum(b"verdicts" in text for text in before.values())
    assert sum(job not in killed for _, job in cluster.begun()) == 30 - judged


def test_the_same_records_as_on_one_machine(cluster: Three, tasks: Path, tmp_path: Path) -> None:
    cluster.have(one={}, two={})
    far = fake_actors.run(cluster.address, tasks, tmp_path / "far", 4)
    assert comparable(far) == local(tasks, tmp_path / "local", 4)
    assert {trial.status for trial in far.trials} == {Status.PASSED, Status.WRONG_RESULT, Status.NOTHING_SUBMITTED}
    assert set(cluster.asked()) == {"one", "two"} and len(cluster.asked()) == 12


def test_a_node_that_dies_loses_no_trial(cluster: Three, tasks: Path, tmp_path: Path) -> None:
    cluster.have(one={}, two={})
    seed = random.randrange(1000)
    moment = random.Random(seed).uniform(0.0, 2.0)

    def kill() -> None:
        while len(cluster.asked()) < 2:
            time.sleep(0.02)
        time.sleep(moment)
        cluster.kill("two")

    killing = threading.Thread(target=kill)
    killing.start()
    far = fake_actors.run(cluster.address, tasks, tmp_path / "far", 10)
    killing.join(60)
    assert comparable(far) == local(tasks, tmp_path / "local", 10), f"seed {seed}, killed after {moment:.2f} s"
    assert len(cluster.asked()) in (30, 31)  # the one in flight, if any, was begun twice


REACHING = """

import socket

right = rms_norm


def rms_norm(*arguments):
    for name in ("raylet", "plasma_store"):
        with socket.socket(socket.AF_UNIX) as one:
            try:
                one.connect(f"/tmp/ray/session_latest/sockets/{name}")
            except FileNotFoundError:
                continue
            raise RuntimeError("reached Ray")
    raise RuntimeError("no way to Ray")
"""


def test_a_real_judge_on_a_node(cluster: Three, tmp_path: Path) -> None:
    """The CPU platform judges a candidate that fails before anything is timed, and one that looks for Ray.

    Ray's sockets are files, which closing the network leaves open, and they ask for no token.
    """
    cluster.have(one={})
    assert Path("/tmp/ray/session_latest/sockets").is_dir()
    task = load_task(TASKS / RMS_NORM)
    broken = ROOT / "examples" / "candidates" / "broken" / RMS_NORM / "kernel.py"
    kernel = tmp_path / "kernel.py"
    kernel.write_text((task.path / "kernel.py").read_text(encoding="utf-8") + REACHING, encoding="utf-8")
    with RayExecutor(cluster.address).judges(JudgesWanted("cpu", tasks={RMS_NORM: task.path})) as judges:
        evaluation = judges.evaluate(task, broken, Options(max_work=1e5))
        failure = judges.evaluate(task, kernel, Options(heldout=False, max_work=1e4)).failure
        assert evaluation.status is Status.WRONG_RESULT and evaluation.environment == judges.environment
    assert failure is not None and "no way to Ray" in failure.detail


def test_a_judge_on_a_new_node_takes_the_place_of_a_lost_one(cluster: Three, tasks: Path, tmp_path: Path) -> None:
    """The only judge dies; its evaluation waits for another node."""
    cluster.have(one={})

    arguments = (cluster.address, tasks, tmp_path / "far", 4)
    running = threading.Thread(target=fake_actors.run, args=arguments)  # nodes are added by the main thread only
    running.start()
    while len(cluster.asked()) < 2:
        time.sleep(0.02)
    cluster.kill("one")
    cluster.add("three", {})
    running.join(100)
    assert comparable(records.read_run(tmp_path / "far")) == local(tasks, tmp_path / "local", 4)
    assert set(cluster.asked()) == {"one", "three"}


def test_a_node_with_another_toolchain_is_refused(
    cluster: Three, tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.have(three={}, newer={ENVIRONMENT: '{"versions": {"torch": "2.12"}}'})
    with FakeExecutor(cluster.address).judges(wanted(tasks)) as judges:
        assert len(judges.environments) == 1
    assert "torch 2.1" in caplog.text and "instead of 2.1" in caplog.text


def test_nodes_that_differ_are_refused(
    cluster: Three, tasks: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_task(tmp_path / "other", SCALE, task=TASK.replace("alpha, plus", "beta, plus"))
    other, open_network = {"ARENA_TASKS_DIR": str(tmp_path / "other")}, {ENVIRONMENT: '{"isolation": "session"}'}
    cluster.have(three={}, other=other, open_network=open_network)
    far = fake_actors.run(cluster.address, tasks, tmp_path / "far", 2)
    assert comparable(far) == local(tasks, tmp_path / "local", 2) and set(cluster.asked()) == {"three"}
    assert f"{SCALE} differs: content hash" in caplog.text and "its sandbox lacks network and mount" in caplog.text
    cluster.have(open_network=open_network)
    with (
        pytest.raises(JudgeUnavailable, match="its sandbox lacks network and mount"),
        FakeExecutor(cluster.address).judges(wanted(tasks)),
    ):
        raise AssertionError("there is no judge")


def test_a_run_on_gpus_of_two_vendors(cluster: Three, tasks: Path, tmp_path: Path) -> None:
    """No GPU is there, and the judges are fakes: what is tested is where they are placed."""
    cluster.have()
    cluster.add("nvidia", {}, {"accelerator_type:H200": 1.0}, 2)
    cluster.add("amd", {}, {"accelerator_type:AMD-Instinct-MI300X-OAM": 1.0}, 1)
    mapped = fake_actors.plan(tasks, 3, (("scale", "rocm"), ("*", "cuda")))
    wanted = wanted_of(mapped.tasks_of(), mapped.tasks, JudgesWanted("auto", corpora=(tasks,)))
    with started(FakeExecutor(cluster.address), wanted) as judges:
        assert {name: len(pool.environments) for name, pool in judges.items()} == {"rocm": 1, "cuda": 2}
        run = runner.run(mapped, tmp_path / "far", judges)
    judged = [trial for trial in run.trials if trial.evaluation is not None]
    assert {trial.task: trial.environment.device.platform for trial in judged} == {SCALE: "rocm", TWICE: "cuda"}
    asked = cluster.asked()
    assert (asked.count("amd"), asked.count("nvidia")) == (6, 3)


OPEN = """
from ray.cluster_utils import Cluster
print(Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}).address, flush=True)
input()
"""


def test_a_cluster_that_takes_connections_without_a_token_is_refused(
    cluster: Three, tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the address is of this machine alone, it is a warning."""
    assert refuses_strangers(cluster.address)
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    with subprocess.Popen(
        [sys.executable, "-c", OPEN], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        address = other.stdout.readline().strip()
        with (
            pytest.raises(UsageError, match="takes connections without a token"),
            FakeExecutor(address).judges(wanted(tasks)),
        ):
            raise AssertionError("there is no judge")
        assert "can run code" not in caplog.text
        local = f"127.0.0.1:{address.rsplit(':', 1)[1]}"
        with pytest.raises(UsageError, match="arena_judge"), FakeExecutor(local).judges(wanted(tasks)):
            raise AssertionError("there is no judge")
        assert "whoever reaches this machine can run code on it" in caplog.text
        other.communicate("\n", timeout=60)


def test_a_cluster_without_judges_is_refused(cluster: Three, tasks: Path) -> None:
    cluster.have()
    with pytest.raises(UsageError, match="arena_judge"), FakeExecutor(cluster.address).judges(wanted(tasks)):
        raise AssertionError("there is no judge")
