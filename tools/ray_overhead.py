"""What Ray costs: the same short trials with a judge of this machine, and with a judge on a Ray cluster started here.

    python tools/ray_overhead.py                     100 trials of the CPU platform with each
    python tools/ray_overhead.py --platform cuda     on the GPU, which all judges then hold; those that are idle wait

Two judges of one machine differ by more than Ray costs: a second local one is the control. What Ray adds lies outside
of the stages that the judge times itself, so that part of each trial is shown, too. All judges are warm. Blocks of ten
trials take turns, each time in another order, so that what else the machine does meets all alike.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from arena.agents.base import AgentSpec
from arena.results.record import Trial
from arena.results.verdict import Status
from arena.runs import runner
from arena.runs.config import RunConfig
from arena.runs.executors import executor
from arena.runs.executors.base import JudgesWanted
from arena.runs.service.judge_pool import JudgePool

TASK = "triton2triton/normalization/rms_norm"
BLOCK = 10
SHORT = {"heldout": False, "seeds": 1, "max_work": 1e5, "timing_budget_s": 0.02}


class Timed(NamedTuple):
    """Seconds of a trial, from when its agent begins to when its verdict is here; and of those, outside the stages."""

    whole: float
    outside: float


def timed(trial: Trial) -> Timed:
    assert trial.evaluation is not None
    return Timed(trial.seconds, trial.seconds - sum(verdict.seconds for verdict in trial.evaluation.verdicts))


def block(plan: runner.RunPlan, folder: Path, judges: JudgePool) -> list[Timed]:
    """Run ten trials."""
    trials = runner.run(plan, folder, judges).trials
    broken = [trial for trial in trials if trial.status is Status.HARNESS_ERROR]
    if broken:
        raise SystemExit(f"a trial has no verdict: {broken[0].detail}")
    return [timed(trial) for trial in trials]


def report(found: dict[str, list[Timed]]) -> str:
    lines = [f"{'':8} {'trials':>7} {'sum s':>8} {'median s':>9} {'outside the stages, median ms':>31}"]
    middle, outside = {}, {}
    for name, values in found.items():
        middle[name] = statistics.median(one.whole for one in values)
        outside[name] = statistics.median(one.outside for one in values)
        total = sum(one.whole for one in values)
        lines.append(f"{name:8} {len(values):7} {total:8.1f} {middle[name]:9.3f} {outside[name] * 1e3:31.1f}")
    for name in ("control", "ray"):
        added = outside[name] - outside["local"]
        lines.append(f"{name} adds {added * 1e3:.1f} ms to a trial: {added / middle['local']:.1%} of it")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="cpu")
    parser.add_argument("--trials", type=int, default=100)
    chosen = parser.parse_args()
    config = RunConfig(
        name="overhead",
        tasks=(TASK,),
        agents=(AgentSpec("noop", "noop"),),
        platform=chosen.platform,
        attempts=BLOCK,
        jobs=1,
        evaluation=SHORT,
        path="ray_overhead.py",
    )
    plan = runner.plan_run(config)
    wanted = JudgesWanted(chosen.platform, tasks={TASK: plan.tasks[TASK].path})
    found: dict[str, list[Timed]] = {"local": [], "control": [], "ray": []}
    warm = replace(plan, config=replace(config, attempts=1))
    with (
        tempfile.TemporaryDirectory() as place,
        executor("ray").judges(wanted) as there,
        executor("local").judges(wanted) as here,
        executor("local").judges(wanted) as control,
    ):
        judges = dict(zip(found, (here, control, there), strict=True))
        for name, pool in judges.items():
            block(warm, Path(place, f"{name}-warm"), pool)
        orders = itertools.cycle(itertools.permutations(found))
        for number, order in zip(range(chosen.trials // BLOCK), orders, strict=False):
            for name in order:
                found[name] += block(plan, Path(place, f"{name}-{number}"), judges[name])
    print(report(found))


if __name__ == "__main__":
    main()
