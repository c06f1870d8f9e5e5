"""Scales of other benchmarks, for one trial. Formulas and sources: docs/evaluate/measures.md.

The dense and the bounded reward are in `reward.py`.
"""

from __future__ import annotations

import math

COMPILE_POINTS = 20.0
CORRECT_POINTS = 100.0
SPEEDUP_POINTS = 100.0


def points(compiled: bool, correct: bool, speedup: float | None) -> float:
    """20 for compiling, 100 more for being correct, 100 more per unit of a valid speedup (AgentKernelArena)."""
    if not compiled:
        return 0.0
    if not correct:
        return COMPILE_POINTS
    return COMPILE_POINTS + CORRECT_POINTS + SPEEDUP_POINTS * (speedup or 0.0)


def pass_at_k(attempts: int, passed: int, k: int) -> float:
    """Chance that at least one of k attempts drawn from all passes: 1 - C(n - c, k) / C(n, k) (Chen et al., 2021)."""
    return 1 - math.comb(attempts - passed, k) / math.comb(attempts, k)


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
