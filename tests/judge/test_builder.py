"""A builder: what it refuses, that the judge refuses it too, and that it leaves the judge's builds in the cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.errors import InfrastructureError
from arena.judge.compile.builder_client import BuilderClient
from arena.judge.compile.hip_toolchains import toolchain_for
from arena.judge.compile.stage import build_program
from arena.judge.process.client import JudgeClient
from arena.platforms.toolchains.base import BuildFailed, Built, NativeWorker, Source, Target
from arena.platforms.toolchains.hip_build import Runner
from arena.results.environment import DeviceFacts, Environment
from arena.results.portability import BuildOutcome
from arena.results.record import Evaluation
from arena.results.verdict import Stage, Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options

RMS_NORM = TASKS / "triton2triton/normalization/rms_norm"
SOFTMAX = TASKS / "hip2hip/modules/softmax"
QUICK = Options(heldout=False, seeds=1, max_work=2e4, call_timeout_s=20.0, timing_budget_s=0.02)
CPU = Environment(DeviceFacts("cpu", "cpu", "cpu", "a processor", 32, 1 << 30, 0), "session")
GPU = Environment(DeviceFacts("cuda", "nvidia", "sm_90", "NVIDIA H200", 32, 140 << 30, 60 << 20), "session")


@pytest.fixture(scope="module")
def builder() -> Iterator[BuilderClient]:
    with BuilderClient() as kept:
        yield kept


def candidate(folder: Path, text: str, name: str = "kernel.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def started(folder: Path) -> str:
    return (folder / load_task(folder).task_type.kernel_file).read_text(encoding="utf-8")


def refused(found: Evaluation | None) -> Evaluation:
    assert found is not None
    assert [verdict.stage for verdict in found.verdicts] == [Stage.COMPILE]
    assert {case.candidate for case in found.cases} == {Status.NOT_RUN}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("task", [RMS_NORM, SOFTMAX], ids=["triton", "hip"])
def test_starting_kernels_are_not_refused(builder: BuilderClient, tmp_path: Path, task: Path) -> None:
    name = load_task(task).task_type.kernel_file
    assert builder.compile(task, candidate(tmp_path, started(task), name), QUICK, CPU) is None


@pytest.mark.slow(but=["syntax", "rule"])
@pytest.mark.parametrize(
    ("task", "text", "status", "said"),
    [
        pytest.param(SOFTMAX, "#error not today\n", Status.COMPILE_ERROR, "not today", id="hip-error"),
        pytest.param(SOFTMAX, 'extern "C" int softmax(int x);\n', Status.COMPILE_ERROR, "softmax", id="hip-signature"),
        pytest.param(RMS_NORM, "def rms_norm(:\n", Status.COMPILE_ERROR, "SyntaxError", id="syntax"),
        pytest.param(RMS_NORM, "import torch.not_there\n", Status.LOAD_ERROR, "not_there", id="import"),
        pytest.param(RMS_NORM, "import cupy\n", Status.RULE_VIOLATION, "kernel.py:1: imports `cupy`", id="rule"),
        pytest.param(RMS_NORM, "x = 1\n", Status.LOAD_ERROR, "rms_norm", id="no-entry"),
        pytest.param(RMS_NORM, "import os; os._exit(3)\n", Status.CRASH, "code 3", id="exit"),
    ],
)
def test_what_is_refused_is_what_the_judge_refuses(
    builder: BuilderClient, cpu_judge: JudgeClient, tmp_path: Path, task: Path, text: str, status: Status, said: str
) -> None:
    file = candidate(tmp_path, text, load_task(task).task_type.kernel_file)
    mine = refused(builder.compile(task, file, QUICK, cpu_judge.environment))
    assert mine.status is status and said in mine.verdicts[0].detail
    theirs = cpu_judge.evaluate(task, file, QUICK)
    assert (mine.status, mine.task, mine.task_hash, mine.candidate_hash) == (
        theirs.status,
        theirs.task,
        theirs.task_hash,
        theirs.candidate_hash,
    )
    assert mine.cases == theirs.cases
    assert mine.environment == theirs.environment
    assert set(mine.seconds) == set(theirs.seconds)


@pytest.mark.slow
def test_a_file_that_never_loads_is_a_timeout(builder: BuilderClient, tmp_path: Path) -> None:
    options = Options(heldout=False, call_timeout_s=1.0)
    for environment in (CPU, GPU):
        found = builder.compile(RMS_NORM, candidate(tmp_path, "while True: pass\n"), options, environment)
        assert refused(found).status is Status.TIMEOUT


@pytest.mark.slow
def test_the_judge_finds_the_builds_in_the_cache(
    builder: BuilderClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{started(SOFTMAX)}\n// {time.time_ns()}\n"
    file = candidate(tmp_path, text, "kernel.hip")
    assert builder.compile(SOFTMAX, file, QUICK, CPU) is None
    seen: list[bool] = []

    class Watched:
        def __init__(self, target: Target, cache_root: Path, run: Runner) -> None:
            self._real = toolchain_for(target, cache_root, run=run)

        def build(self, source: Source, target: Target, timeout_s: float = 120.0) -> Built | BuildFailed:
            built = self._real.build(source, target, timeout_s)
            seen.append(isinstance(built, Built) and built.cached)
            return built

        def native_worker(self, arch: str) -> NativeWorker:
            return self._real.native_worker(arch)

    monkeypatch.setattr("arena.judge.compile.stage.toolchain_for", Watched)
    task = load_task(SOFTMAX)
    build_program(task, file, task.seen[:1], CPU.device)
    assert seen == [True, True], "its own, and that of the headers it may include"


BROKEN = "tl.store(y + offsets, undefined_name)"
WORKING = "tl.store(y + offsets, tl.load(x + offsets))"


def copying(statement: str, before: str = "") -> str:
    """A kernel for rms_norm's signature; what it computes is nobody's business here."""
    return (
        "import torch, triton, triton.language as tl\n\n"
        "@triton.jit\ndef copy(x, y):\n    offsets = tl.arange(0, 16)\n"
        f"    {statement}\n\n"
        f"def rms_norm(x, weight, eps, y):\n    {before or 'pass'}\n    copy[(1,)](x, y)\n"
    )


@pytest.mark.slow
def test_triton_for_a_gpu_that_is_not_here(builder: BuilderClient, tmp_path: Path) -> None:
    options = Options(heldout=False)
    assert builder.compile(RMS_NORM, candidate(tmp_path, copying(WORKING)), options, GPU) is None
    found = refused(builder.compile(RMS_NORM, candidate(tmp_path, copying(BROKEN)), options, GPU))
    assert found.status is Status.COMPILE_ERROR
    assert "undefined_name" in found.verdicts[0].detail


@pytest.mark.slow
@pytest.mark.parametrize(
    "before", ["raise RuntimeError('no device')", "torch.cuda.synchronize(); torch.cuda.memory_stats()['none']"]
)
def test_what_may_fail_for_want_of_a_device_is_left_to_the_judge(
    builder: BuilderClient, tmp_path: Path, before: str
) -> None:
    assert builder.compile(RMS_NORM, candidate(tmp_path, copying(WORKING, before)), Options(), GPU) is None


def test_an_arch_that_nobody_knows_is_left_to_the_judge(builder: BuilderClient, tmp_path: Path) -> None:
    unknown = Environment(DeviceFacts("rocm", "amd", "gfx9999", "a new one", 64, 1 << 30, 0), "session")
    assert builder.compile(RMS_NORM, candidate(tmp_path, copying(BROKEN)), QUICK, unknown) is None


@pytest.mark.slow
def test_targets_of_what_is_refused_are_there(builder: BuilderClient, tmp_path: Path) -> None:
    options = Options(heldout=False, targets=("gfx942",))
    found = refused(builder.compile(RMS_NORM, candidate(tmp_path, copying(BROKEN)), options, GPU))
    assert [(build.target, build.outcome) for build in found.targets] == [("gfx942", BuildOutcome.FAILED)]


@pytest.mark.slow
def test_requests_do_not_wait_for_each_other(builder: BuilderClient, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    answers: list[Evaluation | None] = []
    sleeping = candidate(slow, "import time; time.sleep(8)\n")
    thread = threading.Thread(target=lambda: answers.append(builder.compile(RMS_NORM, sleeping, QUICK, CPU)))
    thread.start()
    time.sleep(0.5)
    assert refused(builder.compile(RMS_NORM, candidate(tmp_path, "x =\n"), QUICK, CPU)).status is Status.COMPILE_ERROR
    assert thread.is_alive() and not answers, "the slow one is still being loaded"
    thread.join(60)
    assert refused(answers[0]).status is Status.LOAD_ERROR


@pytest.mark.slow
def test_a_builder_that_dies_is_replaced(tmp_path: Path) -> None:
    file = candidate(tmp_path, "x =\n")
    with BuilderClient() as builder:
        first = builder.pid
        assert refused(builder.compile(RMS_NORM, file, QUICK, CPU))
        os.kill(first, signal.SIGKILL)
        time.sleep(0.2)
        assert refused(builder.compile(RMS_NORM, file, QUICK, CPU))
        assert builder.pid != first


@pytest.mark.slow
def test_a_harness_that_fails_is_no_verdict(tmp_path: Path) -> None:
    with BuilderClient() as builder:
        with pytest.raises(InfrastructureError):
            builder.compile(RMS_NORM, tmp_path / "absent.py", QUICK, CPU)
        assert refused(builder.compile(RMS_NORM, candidate(tmp_path, "x =\n"), QUICK, CPU))


def test_an_abandoned_builder_answers_nobody(tmp_path: Path) -> None:
    problems: list[InfrastructureError] = []
    file = candidate(tmp_path, "import time; time.sleep(60)\n")
    with BuilderClient() as builder:

        def ask() -> None:
            try:
                builder.compile(RMS_NORM, file, Options(heldout=False), CPU)
            except InfrastructureError as problem:
                problems.append(problem)

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(1.0)
        builder.kill()
        thread.join(10)
        assert not thread.is_alive() and "builder was ended" in str(problems[0])
        with pytest.raises(InfrastructureError, match="closed"):
            builder.compile(RMS_NORM, file, QUICK, CPU)


def test_the_client_imports_no_torch() -> None:
    code = "import sys; import arena.judge.compile.builder_client; print({'torch', 'triton'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "set()\n"
