"""How much do a judge's passes vary, and how far from 1 is a kernel against itself?

    python tools/round_noise.py --platform cuda 'triton2triton/normalization/*' --most 6
    python tools/round_noise.py --platform cuda 'hip2hip/*' --pass-ms 5         with long passes of another length

Evaluates each task's own kernel twice with a warm judge in this process; what counts is the second time, when the
baseline is known and the kernel compiled. Of each timed case it prints the rounds, the calls of a long pass, and the
speedup with the half width of its interval: in the end, after eight rounds, and after these without what is added for
workers.
Then, over all placements of cases: how much long and short passes vary, how much a long pass takes beyond what its
worker says, and how much that varies. And over all comparisons, with those that were made again: how long passes of the
baseline are waited for, and what comes after them, how much that varies, and by how much the candidate's median exceeds
it. Deviations are standard ones, from median absolute deviations.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from profile_calls import chosen_tasks, prepared  # noqa: E402
from split_cost import Silent  # noqa: E402
from wrapping import Function, wrap  # noqa: E402

from arena.judge.performance import estimates  # noqa: E402
from arena.judge.performance import stage as performance  # noqa: E402
from arena.judge.performance.plausibility import Timing, _median_deviation  # noqa: E402
from arena.judge.performance.timer import TimingConfig  # noqa: E402
from arena.judge.performance.waits import LONG, SHORT, SINGLE  # noqa: E402
from arena.judge.process.service import JudgeService  # noqa: E402
from arena.platforms import here  # noqa: E402
from arena.results.record import CaseTiming, Evaluation, Round  # noqa: E402
from arena.task.options import Options  # noqa: E402

EIGHT = estimates.ROUNDS_OF_A_LOOK


@dataclass
class Noise:
    """Microseconds, one value for each placement of each case or for each comparison; and what the cases have."""

    parts_us: dict[str, list[float]] = field(default_factory=dict)
    off: list[float] = field(default_factory=list)
    """how far a speedup is from 1"""
    rounds: list[int] = field(default_factory=list)

    def add(self, timing: CaseTiming) -> None:
        """Take in one case."""
        self.off.append(abs(timing.speedup.value - 1))
        self.rounds.append(len(timing.rounds))
        for swapped in (False, True):
            there = [measured for measured in timing.rounds if measured.swapped is swapped]
            if len(there) > 2:
                self._add_placement(there)

    def _add_placement(self, rounds: Sequence[Round]) -> None:
        beyond = [measured.candidate_long_s - measured.candidate_host_s for measured in rounds]
        for name, seconds in (
            ("long passes of candidates vary by", deviation([measured.candidate_long_s for measured in rounds])),
            ("long passes of baselines vary by", deviation([measured.baseline_long_s for measured in rounds])),
            ("short passes of candidates vary by", deviation([measured.candidate_short_s for measured in rounds])),
            ("a long pass takes beyond its worker's word", statistics.median(beyond)),
            ("which varies by", deviation(beyond)),
        ):
            self._add(name, seconds)

    def _add(self, name: str, seconds: float) -> None:
        self.parts_us.setdefault(name, []).append(seconds * 1e6)

    def add_waits(self, timing: Timing) -> None:
        """Take in what was waited before and after the passes of one comparison."""
        ours, theirs = timing.candidate_waits, timing.baseline_waits
        for name in (LONG, SHORT, SINGLE):
            for when, candidate_ms, baseline_ms in (
                ("before", ours.before_ms(name), theirs.before_ms(name)),
                ("after", ours.after_ms(name), theirs.after_ms(name)),
            ):
                if len(candidate_ms) and len(baseline_ms):
                    usual_ms = float(np.median(baseline_ms))
                    self._add(f"{when} a {name} pass of a baseline", usual_ms / 1e3)
                    self._add(f"{when} a {name} pass, varies by", deviation(baseline_ms) / 1e3)
                    more_ms = float(np.median(candidate_ms)) - usual_ms
                    self._add(f"{when} a {name} pass of a candidate, more by", more_ms / 1e3)

    def keep_waits(self, inner: Function) -> Function:
        """Return the plausibility checks such that they take in the waits of what they check."""

        def outer(timing: Timing, *given: Any) -> Any:
            self.add_waits(timing)
            return inner(timing, *given)

        return outer

    def report(self) -> None:
        """Print quartiles, and how far speedups are from 1."""
        print("microseconds: quarter below, half below, three quarters below")
        for name, values in self.parts_us.items():
            low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
            print(f"{low:8.1f} {middle:8.1f} {high:8.1f}  {name}")
        print(f"{len(self.off)} cases, {statistics.fmean(self.rounds):.1f} rounds; from 1 they are off by")
        print(f"{statistics.median(self.off):.3%} in the median and {max(self.off):.2%} at worst")


def deviation(values: npt.ArrayLike) -> float:
    """The standard deviation of normal values, from their median absolute deviation."""
    return _median_deviation(np.asarray(values))


def line(case: str, timing: CaseTiming, config: TimingConfig) -> str:
    """Say what one case has."""
    calls = timing.calls_long - timing.calls_short
    eight = timing.rounds[:EIGHT]
    with_workers = estimates.speedup(eight, calls, config.reach_error_s, config.latency_error).half_width
    without = estimates.speedup(eight, calls).half_width
    return (
        f"    {case:12} {len(timing.rounds):4} rounds {timing.calls_long:5} calls {timing.baseline_ms.value:9.5f} ms "
        f"{timing.speedup.value:.4f} ± {timing.speedup.half_width:.4f}, at {EIGHT} {with_workers:.4f}, {without:.4f}"
        + (f" measured again: {timing.doubted}" if timing.doubted else "")
        + (f" UNDECIDED: {timing.undecided}" if timing.undecided else "")
    )


def shown(task: str, seconds: float, found: Evaluation, noise: Noise, config: TimingConfig) -> None:
    """Print one evaluation, and take it in."""
    print(f"{task}: {found.status} in {seconds:.2f} s")
    for case in found.cases:
        if case.timing is not None:
            noise.add(case.timing)
            print(line(case.case, case.timing, config), flush=True)


def main() -> None:
    """Evaluate each task twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", help="ids or patterns")
    parser.add_argument("--platform", default="auto", help="auto, cpu, cuda or rocm")
    parser.add_argument("--most", type=int, default=8, help="tasks at most, spread over those that match")
    parser.add_argument("--seen", action="store_true", help="seen cases alone")
    parser.add_argument("--pass-ms", type=float, help="how long a long pass takes; by default the judge's own choice")
    asked = parser.parse_args()
    options, noise = Options(heldout=not asked.seen), Noise()
    wrap(performance, "failed_check", noise.keep_waits)
    with closing(JudgeService(here(asked.platform))) as judge, tempfile.TemporaryDirectory() as place:
        timer = judge.context.timer
        if asked.pass_ms:
            timer.timing_config = replace(timer.timing_config, pass_s=asked.pass_ms / 1e3)
        for task in chosen_tasks(asked.tasks, asked.most):
            request = prepared(task, Path(place), options)
            judge.evaluate(request, Silent())  # type: ignore[arg-type]
            began = time.monotonic()
            found = judge.evaluate(request, Silent())  # type: ignore[arg-type]
            shown(task.id, time.monotonic() - began, found, noise, timer.timing_config)
        judge.tidy()
    noise.report()


if __name__ == "__main__":
    main()
