"""What two wave sizes say together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.judge.correctness.verify import OutputCheck
from arena.judge.correctness.wave_size import at_both_wave_sizes, build_other_wave
from arena.judge.process.client import JudgeClient
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.cpu.platform import CpuPlatform
from arena.results.effort import Effort
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options

GOOD = OutputCheck(Status.PASSED, error_ratio=0.2)
BAD = OutputCheck(Status.WRONG_RESULT, "y: error is 7 × tolerance")
SOFTMAX = load_task(TASKS / "hip2hip/modules/softmax")
FACTS = CpuPlatform().facts()
RARELY = """#include "task.h"
template <typename E> __global__ void kernel(const E* x, E* y, int64_t count) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float value = static_cast<float>(x[i]);
    const bool wrong = (__float_as_uint(value) >> 4) % 3001 == 0;
    y[i] = static_cast<E>(wrong ? 1000.0f : value / (1.0f + expf(-value)));
}
extern "C" hipError_t silu(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    kernel<<<static_cast<unsigned>((M * N + 63) / 64), 64, 0, stream>>>(x, y, M * N);
    return hipGetLastError();
}
"""


def test_right_at_both_is_right() -> None:
    assert at_both_wave_sizes(GOOD, GOOD) is GOOD


def test_wrong_at_both_is_what_it_is() -> None:
    assert at_both_wave_sizes(BAD, replace(BAD, status=Status.CRASH)) is BAD


@pytest.mark.parametrize(
    ("first", "other", "said"), [(GOOD, BAD, "right at wave size 32"), (BAD, GOOD, "size 64; at 32")]
)
def test_right_at_one_only_depends_on_the_wave_size(first: OutputCheck, other: OutputCheck, said: str) -> None:
    found = at_both_wave_sizes(first, other)
    assert found.status is Status.WAVE_SIZE_DEPENDENT
    assert said in found.detail and BAD.detail in found.detail


def test_a_rare_value_is_not_said_to_depend_on_the_wave_size(cpu_judge: JudgeClient, tmp_path: Path) -> None:
    """Both builds see the same secret inputs; about every second evaluation draws a value that this kernel fails at."""
    (tmp_path / "kernel.hip").write_text(RARELY, encoding="utf-8")
    options = Options(effort=Effort.CORRECTNESS, case=("seen-01",), heldout=False, call_timeout_s=60.0)
    task, file = TASKS / "hip2hip/modules/silu", tmp_path / "kernel.hip"
    found = {cpu_judge.evaluate(task, file, options).verdicts[-1].status for _ in range(8)}
    assert found <= {Status.PASSED, Status.WRONG_RESULT}


def test_a_device_or_triton_has_no_other_wave_size() -> None:
    assert build_other_wave(SOFTMAX, Path("none"), (), replace(FACTS, platform="cuda")) is None
    rms_norm = load_task(TASKS / "triton2triton/normalization/rms_norm")
    assert build_other_wave(rms_norm, Path("none"), (), FACTS) is None


def test_what_builds_at_one_wave_size_only_is_told_apart(tmp_path: Path) -> None:
    candidate = tmp_path / "kernel.hip"
    text = (SOFTMAX.path / "kernel.hip").read_text(encoding="utf-8")
    candidate.write_text(text + "\n#if HIP_CPU_WAVE_SIZE == 64\n#error not for AMD\n#endif\n", encoding="utf-8")
    with pytest.raises(CandidateFailed, match="not for AMD") as failed:
        build_other_wave(SOFTMAX, candidate, SOFTMAX.seen[:1], FACTS)
    assert failed.value.status is Status.WAVE_SIZE_DEPENDENT
