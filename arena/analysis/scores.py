"""What one trial is worth on the scales of other benchmarks. Formulas and sources: docs/measures.md."""

from __future__ import annotations

from arena.model.verdict import Status

COMPILE_POINTS = 20.0
CORRECT_POINTS = 100.0
SPEEDUP_POINTS = 100.0

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


def points(compiled: bool, correct: bool, speedup: float | None) -> float:
    """20 for compiling, 100 more for being correct, 100 more per unit of a valid speedup (AgentKernelArena)."""
    if not compiled:
        return 0.0
    if not correct:
        return COMPILE_POINTS
    return COMPILE_POINTS + CORRECT_POINTS + SPEEDUP_POINTS * (speedup or 0.0)


def reward(status: Status | None, speedup: float | None) -> float:
    """Dense reward (KernelBench on OpenReward): speedup − 1 for a passed trial, else −2 … −7; None: no record.

    A passed trial that was never timed counts as equally fast.
    """
    if status is None:
        return MISSING_REWARD
    if status is Status.PASSED:
        return speedup - 1 if speedup is not None else 0.0
    return REWARDS[status]


def sol_score(candidate_ms: float, baseline_ms: float, bound_ms: float) -> float:
    """Share of the way to the hardware bound (SOL-ExecBench): 0.5 at the baseline's latency, 1 at the bound.

    S = 1 / (1 + (T − T_SOL) / (T_baseline − T_SOL)); faster than the bound counts as the bound. A baseline that
    is already at the bound leaves nothing to close: 1 at the bound, else 0.
    """
    excess = max(0.0, candidate_ms - bound_ms)
    gap = baseline_ms - bound_ms
    if gap <= 0:
        return 1.0 if excess == 0 else 0.0
    return 1 / (1 + excess / gap)
