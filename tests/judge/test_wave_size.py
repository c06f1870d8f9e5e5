"""What two wave sizes say together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.judge.correctness.verify import OutputCheck
from arena.judge.correctness.wave_size import at_both_wave_sizes, build_other_wave
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.cpu.platform import CpuPlatform
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task

GOOD = OutputCheck(Status.PASSED, error_ratio=0.2)
BAD = OutputCheck(Status.WRONG_RESULT, "y: error is 7 × tolerance")
SOFTMAX = load_task(TASKS / "hip2hip/modules/softmax")
FACTS = CpuPlatform().facts()


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
