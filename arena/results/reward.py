"""The dense and the bounded reward of one evaluation, for loops that learn from it.

Source of the dense levels: KernelBench as an OpenReward environment (EnvCommons/KernelBench). Which status belongs to
which level is decided here and explained in docs/evaluate/measures.md.
"""

from __future__ import annotations

from typing import NamedTuple

from arena.results.outcome import Outcome, outcome_of
from arena.results.record import Evaluation
from arena.results.verdict import Status

REWARDS = {
    Status.HARNESS_ERROR: -7.0,
    Status.TIMEOUT: -7.0,
    Status.NOT_RUN: -6.0,
    Status.NOTHING_SUBMITTED: -6.0,
    Status.COMPILE_ERROR: -5.0,
    Status.LOAD_ERROR: -4.0,
    Status.LAUNCH_ERROR: -3.0,
    Status.CRASH: -3.0,
    Status.OUT_OF_MEMORY: -3.0,
    Status.WRONG_RESULT: -2.0,
    Status.NONDETERMINISTIC: -2.0,
    Status.INPUT_MUTATED: -2.0,
    Status.OUT_OF_BOUNDS: -2.0,
    Status.WAVE_SIZE_DEPENDENT: -2.0,
    Status.RULE_VIOLATION: -2.0,
    Status.TIMING_MISMATCH: -2.0,
    Status.IMPLAUSIBLE: -2.0,
}
MISSING_REWARD = -7.0
BREAK_EVEN = 1.05
"""the speedup from which the bounded reward is positive"""


def reward(status: Status | None, speedup: float | None, *, overfit: bool = False) -> float:
    """Return the dense reward: speedup − 1 for what passed, else −2 … −7.

    Args:
        status: of the first stage that failed, or `passed`; None: there is no record.
        speedup: that counts; None for what was never timed, which counts as equally fast.
        overfit: an unseen case is wrong, which earns what a wrong output does.
    """
    if status is None:
        return MISSING_REWARD
    if status is not Status.PASSED:
        return REWARDS[status]
    if overfit:
        return REWARDS[Status.WRONG_RESULT]
    return speedup - 1 if speedup is not None else 0.0


def bounded_reward(speedup: float | None, *, overfit: bool = False) -> float:
    """Share of the baseline's time saved beyond five per cent of the candidate's, never negative (AgentKernelArena).

    Args:
        speedup: that counts; None: the kernel failed, or was never timed, and earns 0.
        overfit: an unseen case is wrong; such a kernel earns 0.
    """
    return 0.0 if speedup is None or overfit else max(0.0, 1 - BREAK_EVEN / speedup)


class Rewards(NamedTuple):
    """Both rewards of one evaluation."""

    dense: float
    bounded: float


def rewards_of(evaluation: Evaluation | None) -> Rewards:
    """Return the rewards of an evaluation; None: nothing was handed in."""
    if evaluation is None:
        return Rewards(reward(Status.NOTHING_SUBMITTED, None), bounded_reward(None))
    overfit, speedup = outcome_of(evaluation) is Outcome.OVERFIT, evaluation.seen_speedup
    return Rewards(reward(evaluation.status, speedup, overfit=overfit), bounded_reward(speedup, overfit=overfit))
