"""Read a run of `noop` and `expert` (`arena run configs/full.yaml`) and print how good the harness itself is.

    python tools/calibration.py runs/full

A/A: `noop` against itself, per case. Experts: geometric-mean speedup per task. Cost: seconds per gated evaluation and
its split. No device is needed; the figures come from the records.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from arena.model.record import CaseResult, Trial
from arena.model.verdict import Stage
from arena.records import read_run

SHORT_MS = 0.010
GATES = (Stage.COMPILE, Stage.CORRECTNESS, Stage.PERFORMANCE)


def timed_cases(trials: list[Trial]) -> Iterator[tuple[Trial, CaseResult]]:
    """Every case with a timing."""
    for trial in trials:
        for case in trial.evaluation.cases if trial.evaluation else ():
            if case.timing is not None:
                yield trial, case


def print_worst(title: str, cases: list[tuple[Trial, CaseResult]], count: int = 5) -> None:
    """The cases whose A/A speedup is furthest from 1."""

    def error(pair: tuple[Trial, CaseResult]) -> float:
        assert pair[1].timing is not None
        return abs(pair[1].timing.speedup.value - 1)

    if not cases:
        return
    errors = sorted((error(pair) for pair in cases), reverse=True)
    print(f"{title}: {len(cases)} cases, worst {errors[0]:.2%}, median {statistics.median(errors):.2%}")
    for trial, case in sorted(cases, key=error, reverse=True)[:count]:
        assert case.timing is not None
        ratio = case.timing.speedup
        micro = case.timing.baseline_ms.value * 1e3
        print(f"    {ratio.value:.4f} [{ratio.low:.4f}, {ratio.high:.4f}] {micro:9.2f} µs  {trial.task} {case.label}")


def print_experts(trials: list[Trial]) -> None:
    """Geometric-mean speedup of every expert over its cases."""
    for trial in trials:
        ratios = [case.timing.speedup.value for _, case in timed_cases([trial]) if case.timing]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"    {mean:6.2f}× over {len(ratios):2} cases ({min(ratios):.2f} … {max(ratios):.2f})  {trial.task}")
        elif trial.evaluation:
            print(f"    {trial.status}: {trial.task}: {trial.detail}")


def print_costs(trials: list[Trial]) -> None:
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


def main(folder: Path) -> None:
    """Print the figures of one run."""
    run = read_run(folder)
    device = run.info.environment.device
    print(f"{device.name} ({device.platform}), {len(run.trials)} of {len(run.info.planned)} trials")
    noop = [trial for trial in run.trials if trial.agent == "noop"]
    cases = list(timed_cases(noop))
    short = [pair for pair in cases if pair[1].timing and pair[1].timing.baseline_ms.value < SHORT_MS]
    print_worst("A/A, 10 µs and more", [pair for pair in cases if pair not in short])
    print_worst("A/A, below 10 µs", short)
    print("experts:")
    print_experts([trial for trial in run.trials if trial.agent == "expert"])
    for agent in run.info.agents:
        print(f"cost of {agent}:")
        print_costs([trial for trial in run.trials if trial.agent == agent])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
