"""`--profile`: what a trace holds, what platforms without a profiler say, and that no verdict depends on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from arena.judge.process.client import JudgeClient
from arena.judge.workers.answers import bounded
from arena.processes.protocol import MOST_KERNELS, Profiled
from arena.results.profile import KernelTime, Profile
from arena.results.record import Split
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS
from arena.task.options import Options
from arena.worker.profiling import kernel_times
from tests.candidates import TASK_OF, assembled, candidates

QUICK = Options(heldout=False, seeds=1, max_work=5e4, call_timeout_s=20.0, timing_budget_s=0.02, profile=True)
RMS_NORM = TASKS / TASK_OF["rms_norm"]

# As PyTorch writes it for a GPU, shortened: worker events, metadata without categories, and the device's work.
TRACE = b"""{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a GPU"}], "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.5, "dur": 90.0, "args": {"Ev Idx": 0}},
  {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 2.0, "dur": 1.5,
   "args": {"grid": [4, 1, 1], "block": [128, 1, 1], "registers per thread": 16, "est. achieved occupancy %": 3}},
  {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 5.0, "dur": 2.5,
   "args": {"grid": [8, 1, 1], "block": [128, 1, 1]}},
  {"ph": "X", "cat": "kernel", "name": "reduce", "pid": 0, "tid": 7, "ts": 9.0, "dur": 9.0, "args": {"queue": 0}},
  {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 20.0, "dur": 0.5, "args": {}},
  {"name": "process_name", "ph": "M", "ts": 1.5, "pid": 0, "tid": 0, "args": {"name": "python"}},
  {"ph": "s", "id": 3, "pid": 1, "tid": 1, "ts": 1.5, "cat": "ac2g", "name": "ac2g"}
], "traceName": "trace.json"}"""


def test_a_trace_is_summed_by_kernel() -> None:
    assert kernel_times(TRACE) == (
        KernelTime("reduce", 1, 9.0),
        KernelTime("add", 2, 4.0, (4, 1, 1), (128, 1, 1)),
        KernelTime("Memset (Device)", 1, 0.5),
    )


def test_a_worker_sends_no_more_than_is_taken() -> None:
    event = '{"name":"%s","cat":"kernel","dur":1.0,"args":{"grid":[1,1,1,1],"block":[1,1,1,1]}}'
    events = ",".join(event % (f"{n:04}" + "k" * 5000) for n in range(1000))
    times = kernel_times(f'{{"traceEvents":[{events}]}}'.encode())
    assert len(times) == MOST_KERNELS and bounded(Profiled(times)) == Profiled(times)


def test_a_profile_without_kernels_says_why() -> None:
    with pytest.raises(ValueError, match="says why"):
        Profile("M=1")


@pytest.mark.slow
def test_the_cpu_platform_says_that_it_has_no_profiler(cpu_judge: JudgeClient) -> None:
    options = structs.replace(QUICK, targets=("gfx942",))
    evaluation = cpu_judge.evaluate(RMS_NORM, RMS_NORM / "kernel.py", options)
    assert evaluation.status is Status.PASSED and evaluation.profile is not None
    assert evaluation.profile.kernels == () and "no profiler" in evaluation.profile.detail
    assert evaluation.profile.case in {case.label for case in evaluation.split(Split.SEEN)}
    uses = evaluation.profile.uses["gfx942"]
    assert uses and all(use.registers > 0 for use in uses)
    again = msgspec.json.decode(msgspec.json.encode(evaluation), type=type(evaluation))
    assert again.profile == evaluation.profile
    assert cpu_judge.evaluate(RMS_NORM, RMS_NORM / "kernel.py", structs.replace(QUICK, profile=False)).profile is None


@pytest.mark.slow
def test_what_failed_is_not_profiled(cpu_judge: JudgeClient, tmp_path: Path) -> None:
    zeros = next(path for path in candidates("cheats") if path.stem == "zeros" and path.suffix == ".py")
    evaluation = cpu_judge.evaluate(RMS_NORM, assembled(zeros, tmp_path), QUICK)
    assert evaluation.status is Status.WRONG_RESULT and evaluation.profile is not None
    assert "no seen case was passed" in evaluation.profile.detail


@pytest.mark.gpu
@pytest.mark.parametrize("task", TASK_OF.values(), ids=TASK_OF)
def test_on_gpu(gpu_judge: JudgeClient, task: str) -> None:
    folder = TASKS / task
    kernel = next(folder.glob("kernel.*"))
    options = structs.replace(QUICK, max_work=1e7)
    evaluation = gpu_judge.evaluate(folder, kernel, options)
    assert evaluation.status is Status.PASSED and evaluation.profile is not None
    profile = evaluation.profile
    assert profile.kernels, profile.detail
    assert all(kernel.calls >= 1 and kernel.device_us > 0 for kernel in profile.kernels)
    assert any(kernel.grid and kernel.block for kernel in profile.kernels)
    table = profile.counters
    assert table is not None and (table.candidate is not None or table.detail), "counters, or why there are none"
    assert table.candidate is None or (table.candidate.kernel_us or 0) > 0
    plain = gpu_judge.evaluate(folder, kernel, structs.replace(options, profile=False))
    assert replace(plain.verdicts[-1], seconds=0.0) == replace(evaluation.verdicts[-1], seconds=0.0)
