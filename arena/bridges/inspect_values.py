"""The values that Inspect stores for a verdict. Used by `inspect_tasks`; needs no Inspect itself."""

from __future__ import annotations

import math
from typing import Any

from arena.bridges.asking import RewardScheme
from arena.model.verdict import Status


def values_of(final: dict[str, Any]) -> dict[str, float]:
    """Return the values of a score; NaN, which Inspect counts in no metric, where one does not apply.

    `speedup` is 0 for what failed. `correctness_drop` is 1 for a kernel that passed every seen case and fails a
    held-out one.
    """
    passed, heldout, speedup = final["status"] == Status.PASSED, final["heldout"], final["speedup"]
    solved = passed and heldout is not None and heldout["passed"] == heldout["cases"]
    tried = passed and heldout is not None
    return {
        **{scheme.field: scheme.of(final) for scheme in RewardScheme},
        "passed": float(passed),
        "solved": float(solved),
        "speedup": (math.nan if speedup is None else speedup) if passed else 0.0,
        "correctness_drop": float(not solved) if tried else math.nan,
    }
