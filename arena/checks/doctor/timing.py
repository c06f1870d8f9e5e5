"""`arena doctor --timing`: measure the timing error on kernels of known duration.

What a launch costs is in every latency and is not known independently: the first case of each kernel carries it, and
the others are held against it. So the check says whether differences of latency are right, in units of a clock that is
not ours (spin) and in proportion (loop, copy).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arena.checks.doctor.timing_kernels import COUNTS, TICK_MS, DurationKernel, Scale, kernels
from arena.errors import InfrastructureError
from arena.judge.process.client import JudgeClient
from arena.platforms.condition import condition, failed_checks_of, warnings_before
from arena.processes.scratch import scratch
from arena.results.environment import Environment
from arena.results.record import LONG_MS, CaseTiming, Evaluation
from arena.results.verdict import Status
from arena.task.options import Options

GPU_BAND = 0.01
CPU_BAND = 0.10
"""wider: a pass on the CPU is one call, and begins when the scheduler wakes the worker up, which takes milliseconds on
a busy machine"""
_OPTIONS = Options(heldout=False, seeds=1, max_work=1e12, timing_budget_s=1.0)
_DRIFT = 2.0


@dataclass(frozen=True)
class KernelTiming:
    """One case: what it should take, what the judge measured, and the interval of that, all in ms."""

    kernel: str
    count: int
    scale: str
    expected_ms: float
    measured_ms: float
    low_ms: float
    high_ms: float
    anchor: bool
    """whether it is what the others are held against, so that its own error is none by construction"""

    @property
    def error(self) -> float:
        """Relative, signed."""
        return self.measured_ms / self.expected_ms - 1


@dataclass(frozen=True)
class TimingErrors:
    """The figures, and warnings about them, each with what to do."""

    environment: Environment
    known: tuple[KernelTiming, ...]
    warnings: tuple[str, ...]
    band: float

    @property
    def counting(self) -> tuple[KernelTiming, ...]:
        """The cases that are long enough and are not held against themselves."""
        return tuple(one for one in self.known if not one.anchor and one.measured_ms >= LONG_MS)

    @property
    def worst(self) -> float | None:
        """The greatest error among the cases that count."""
        return max((abs(one.error) for one in self.counting), default=None)

    @property
    def holds(self) -> bool:
        """Return whether there is a worst error, and it is within the band."""
        return self.worst is not None and self.worst <= self.band


def check_timing(platform: str, began: Callable[[str], None] = lambda kernel: None) -> TimingErrors:
    """Run it on one platform. Raises `InfrastructureError` where a kernel of our own is not right."""
    load = os.getloadavg()[0]
    before = warnings_before(platform)
    with JudgeClient(platform) as judge, scratch("check") as place:
        environment = judge.environment
        emulated = environment.device.emulated
        band = CPU_BAND if emulated else GPU_BAND
        known: list[KernelTiming] = []
        warnings = [*before, *_crowded(load, os.cpu_count() or 1)]
        for kernel in kernels(emulated=emulated):
            began(kernel.name)
            timings, said = _timed(judge, kernel, Path(place))
            known += figures(kernel, timings, emulated=emulated)
            warnings += [f"{kernel.name}: {text}" for text in (*said, *unsteady(timings, band))]
            if not emulated:
                seen = condition(environment.device.platform)
                warnings += [text for text in failed_checks_of(seen) if text not in warnings]
    return TimingErrors(environment, tuple(known), tuple(warnings), band)


def figures(kernel: DurationKernel, timings: Sequence[CaseTiming], *, emulated: bool) -> list[KernelTiming]:
    """Each case beside what it should take: `timings` are those of `COUNTS`, in order."""
    measured = [timing.candidate_ms for timing in timings]
    first, last = measured[0].value, measured[-1].value
    clocked = kernel.scale is Scale.CLOCK
    unit_ms = kernel.unit(emulated=emulated) * TICK_MS if clocked else (last - first) / (COUNTS[-1] - COUNTS[0])
    anchors = (0,) if clocked else (0, len(COUNTS) - 1)
    return [
        KernelTiming(
            kernel=kernel.name,
            count=count,
            scale=kernel.scale.value,
            expected_ms=first + (count - COUNTS[0]) * unit_ms,
            measured_ms=estimate.value,
            low_ms=estimate.low,
            high_ms=estimate.high,
            anchor=place in anchors,
        )
        for place, (count, estimate) in enumerate(zip(COUNTS, measured, strict=True))
    ]


def unsteady(timings: Sequence[CaseTiming], band: float) -> Iterator[str]:
    """Return what the rounds show: intervals too wide to tell, and a device that changed its pace meanwhile."""
    if any(timing.candidate_ms.half_width > band for timing in timings):
        yield f"an interval is wider than ±{band:.0%}: end what else runs here, then check again"
    moved = max(abs(_drift(timing)) for timing in timings)
    if moved > _DRIFT * band:
        yield (
            f"the second half of the rounds differs from the first by {moved:.1%}: other load, clocks or "
            "temperature are not steady; end what else runs here, let the device come to rest, or fix its clocks"
        )


def _drift(timing: CaseTiming) -> float:
    """Return how much slower the later rounds were than the earlier ones in the same place."""
    taken = [r.candidate_long_s - r.candidate_short_s for r in timing.rounds if not r.swapped]
    half = len(taken) // 2
    return float(np.median(taken[half:]) / np.median(taken[:half])) - 1 if half else 0.0


def _crowded(load: float, cores: int) -> Iterator[str]:
    if load > cores / 2:
        yield f"the load was {load:.1f} on {cores} cores before the check began: end what else runs here"


def _timed(judge: JudgeClient, kernel: DurationKernel, place: Path) -> tuple[list[CaseTiming], list[str]]:
    """The timings of a kernel's cases, in order, and the plausibility checks that they fail."""
    folder = kernel.write(place, emulated=judge.environment.device.emulated)
    with tempfile.TemporaryDirectory(dir=place) as apart:
        file = Path(apart) / kernel.file
        file.write_text(kernel.text, encoding="utf-8")
        evaluation = judge.evaluate(folder, file, _OPTIONS)
    timings = [case.timing for case in evaluation.cases if case.timing is not None]
    if len(timings) != len(COUNTS):
        raise InfrastructureError(f"timing check: {kernel.name} was not timed in all cases: {_why(evaluation)}")
    doubted = [case.detail for case in evaluation.cases if case.candidate is not Status.PASSED]
    return timings, [f"failed a plausibility check: {detail}; check again on a quiet machine" for detail in doubted]


def _why(evaluation: Evaluation) -> str:
    failed = next((verdict for verdict in evaluation.verdicts if not verdict.passed), None)
    return f"{failed.status}: {failed.detail}" if failed else "no reason given"
