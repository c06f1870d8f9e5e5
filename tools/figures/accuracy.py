"""What the records of a run say of the harness: A/A, drift, experts and cost. Used by `tools/calibration.py`.

A/A: `noop` against itself, how far its speedups are from 1, and how often their intervals hold it. Drift: a baseline
beside a candidate and alone. Experts: geometric-mean speedup per task. Cost: seconds per gated evaluation and its
split. No device is needed; the figures come from the records.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from arena.judge.performance import estimates
from arena.reports.rows import trial_rows
from arena.results.record import CaseResult, CaseTiming, Estimate, Trial
from arena.results.verdict import Stage
from arena.runs.records import RunRecords, read_run

BANDS_MS = ((0.020, math.inf), (0.005, 0.020), (0.0, 0.005))
GATES = (Stage.COMPILE, Stage.CORRECTNESS, Stage.PERFORMANCE)


def timed_cases(trials: Sequence[Trial]) -> Iterator[tuple[Trial, CaseResult, CaseTiming]]:
    """Every case with a timing."""
    for trial in trials:
        for case in trial.evaluation.cases if trial.evaluation else ():
            if case.timing is not None:
                yield trial, case, case.timing


def print_noop(run: RunRecords) -> None:
    """Deviations from 1 and intervals, by the latency of the baseline, and those of whole trials."""
    cases = list(timed_cases([trial for trial in run.trials if trial.agent == "noop"]))
    for low, high in BANDS_MS:
        band = [(trial, case, timing) for trial, case, timing in cases if low <= timing.baseline_ms.value < high]
        if band:
            print(f"A/A, {named(low, high)}: {described([t.speedup for *_, t in band])}")
            print(f"    noisy: {sum(timing.noisy for *_, timing in band)}")
            print_worst(band)
    trials = [row.speedup for row in trial_rows([run]) if row.agent == "noop" and row.speedup]
    if trials:
        print(f"A/A of whole trials: {described(trials)}")


def named(low_ms: float, high_ms: float) -> str:
    """A band of latencies in words."""
    return f"{low_ms * 1e3:g} µs and more" if high_ms == math.inf else f"{low_ms * 1e3:g} to {high_ms * 1e3:g} µs"


def described(ratios: Sequence[Estimate]) -> str:
    """How far they are from 1, and what their intervals say of it."""
    errors = [abs(ratio.value - 1) for ratio in ratios]
    over = ", ".join(f"{sum(error > limit for error in errors)} above {limit:.0%}" for limit in (0.01, 0.02))
    held = sum(ratio.low <= 1 <= ratio.high for ratio in ratios)
    width = statistics.median(ratio.half_width for ratio in ratios)
    return (
        f"{len(ratios)} with median {statistics.median(errors):.2%}, worst {max(errors):.2%}, {over}; "
        f"intervals hold 1 in {held} ({held / len(ratios):.1%}), half width {width:.2%}"
    )


def print_worst(cases: Sequence[tuple[Trial, CaseResult, CaseTiming]], count: int = 5) -> None:
    """The cases whose A/A speedup is furthest from 1."""
    for trial, case, timing in sorted(cases, key=lambda one: -abs(one[2].speedup.value - 1))[:count]:
        ratio, micro = timing.speedup, timing.baseline_ms.value * 1e3
        print(f"    {ratio.value:.4f} [{ratio.low:.4f}, {ratio.high:.4f}] {micro:9.2f} µs  {trial.task} {case.label}")


def print_drift(trials: Sequence[Trial]) -> None:
    """How far a baseline beside a candidate is from the same one alone, in the same place."""
    for low, high in BANDS_MS:
        band = [t for *_, t in timed_cases(trials) if t.alone_ms and low <= t.baseline_ms.value < high]
        drifts = sorted(abs(interleaved_ms(timing) / timing.alone_ms.value - 1) for timing in band if timing.alone_ms)
        if len(drifts) > 1:
            cuts = statistics.quantiles(drifts, n=100, method="inclusive")
            print(
                f"drift, {named(low, high)}: {len(drifts)} cases; nine in ten within {cuts[89]:.1%}, "
                f"99 in a hundred within {cuts[98]:.1%}, all within {drifts[-1]:.1%}"
            )


def interleaved_ms(timing: CaseTiming) -> float:
    """The baseline in turn with the candidate, where it lay when it was alone."""
    there = [measured for measured in timing.rounds if not measured.swapped]
    slopes = estimates.baseline_slopes(there, timing.calls_long - timing.calls_short)
    return estimates.latency_ms(slopes).value


def print_experts(trials: Sequence[Trial]) -> None:
    """Geometric-mean speedup of every expert over its cases."""
    for trial in trials:
        ratios = [timing.speedup.value for *_, timing in timed_cases([trial])]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"    {mean:6.2f}× over {len(ratios):2} cases ({min(ratios):.2f} … {max(ratios):.2f})  {trial.task}")
        elif trial.evaluation:
            print(f"    {trial.status}: {trial.task}: {trial.detail}")


def print_costs(trials: Sequence[Trial]) -> None:
    """Seconds of the three gates on the seen cases, and what the held-out stage adds."""
    evaluations = [trial.evaluation for trial in trials if trial.evaluation]
    gated = sorted(sum(e.seconds.get(stage, 0.0) for stage in GATES) for e in evaluations)
    if not gated:
        return
    cuts = [gated[0], *statistics.quantiles(gated, n=4), gated[-1]] if len(gated) > 1 else gated
    print(f"gated evaluation, seconds (least, quartiles, most): {', '.join(f'{cut:.2f}' for cut in cuts)}")
    for stage in (*GATES, Stage.HELDOUT):
        seconds = [e.seconds[stage] for e in evaluations if stage in e.seconds]
        if seconds:
            print(f"    {stage:<12} median {statistics.median(seconds):.2f}, most {max(seconds):.2f}")


def print_run(folder: Path) -> None:
    """Print the figures of one run."""
    run = read_run(folder)
    device = run.info.environment.device
    print(f"{device.name} ({device.platform}), {len(run.trials)} of {len(run.info.planned)} trials")
    print_noop(run)
    print_drift(run.trials)
    print("experts:")
    print_experts([trial for trial in run.trials if trial.agent == "expert"])
    for agent in run.info.agents:
        print(f"cost of {agent}:")
        print_costs([trial for trial in run.trials if trial.agent == agent])
