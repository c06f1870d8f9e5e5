"""Wave size: on the CPU platform a HIP candidate must be right at 32 and at 64 lanes, as on NVIDIA and on AMD."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from arena.judge.compile.stage import Build, build_program
from arena.judge.correctness.verify import OutputCheck
from arena.judge.workers.worker import CandidateFailed
from arena.results.environment import DeviceFacts
from arena.results.messages import bare, message
from arena.results.verdict import Status
from arena.task.definition import Case, Task

OTHER_WAVE = 64


def build_other_wave(task: Task, candidate: Path, cases: Iterable[Case], facts: DeviceFacts) -> Build | None:
    """The candidate built for the other wave size; None where a device or a language leaves no choice.

    Raises `CandidateFailed` with `wave_size_dependent` where only the first wave size builds.
    """
    if not facts.emulated or task.task_type.triton:
        return None
    try:
        return build_program(task, candidate, cases, replace(facts, wave_size=OTHER_WAVE))
    except CandidateFailed as failure:
        log = bare(failure.detail)
        detail = message("wave_size_not_built", first=facts.wave_size, other=OTHER_WAVE, log=log)
        raise CandidateFailed(Status.WAVE_SIZE_DEPENDENT, detail) from None


def at_both_wave_sizes(first: OutputCheck, other: OutputCheck) -> OutputCheck:
    """One finding from two: what is right at one wave size alone is `wave_size_dependent`."""
    passed = (first.status is Status.PASSED, other.status is Status.PASSED)
    if passed == (True, False):
        return _wrong_at_one(32, 64, other)
    if passed == (False, True):
        return _wrong_at_one(64, 32, first)
    return first


def _wrong_at_one(right: int, wrong: int, finding: OutputCheck) -> OutputCheck:
    said = bare(finding.detail)
    detail = message("wrong_at_wave_size", right=right, wrong=wrong, status=finding.status, detail=said)
    return OutputCheck(Status.WAVE_SIZE_DEPENDENT, detail)
