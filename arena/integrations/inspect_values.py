"""The values that Inspect stores for a verdict. Used by `inspect_tasks`; needs no Inspect itself."""

from __future__ import annotations

import math
from typing import Any

from arena.integrations.asking import RewardScheme
from arena.results.outcome import Outcome

_TRIED = (Outcome.SOLVED, Outcome.OVERFIT)


def values_of(final: dict[str, Any]) -> dict[str, float]:
    """Return the values of a score; NaN, which Inspect counts in no metric, where one does not apply.

    `speedup` is 0 for what is not solved. `correctness_drop` is 1 for a kernel that is right on every seen case and
    wrong on a held-out one.
    """
    outcome, speedup = Outcome(final["outcome"]), final["speedup"]
    return {
        **{scheme.field: scheme.of(final) for scheme in RewardScheme},
        "solved": float(outcome.solves),
        "overfit": float(outcome is Outcome.OVERFIT),
        "speedup": (math.nan if speedup is None else speedup) if outcome.solves else 0.0,
        "correctness_drop": float(outcome is Outcome.OVERFIT) if outcome in _TRIED else math.nan,
    }
