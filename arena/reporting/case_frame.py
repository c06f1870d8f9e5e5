"""One case as named cells: what `Result.cases`, `cases.csv`, the terminal and the report's page are made from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from arena.model.record import CaseResult, Estimate, Evaluation, Split
from arena.model.verdict import CORRECT, Status

if TYPE_CHECKING:
    import pandas as pd

Cell = str | int | float | bool | None
_UNJUDGED = (Status.NOT_RUN, Status.HARNESS_ERROR)


class HeldoutOutcome(StrEnum):
    """How baseline and candidate did on one held-out case."""

    BOTH_PASS = "both_pass"
    REGRESSION = "regression"
    BOTH_FAIL = "both_fail"
    IMPROVEMENT = "improvement"


def heldout_ran(evaluation: Evaluation) -> bool:
    """Return whether any held-out case was evaluated."""
    return any(result.candidate not in _UNJUDGED for result in evaluation.split(Split.HELDOUT))


def heldout_outcome(result: CaseResult, ran: bool) -> HeldoutOutcome | None:
    """Return the outcome of a held-out case, or None where the harness failed or the held-out stage never ran.

    A case that the candidate did not reach, since it hung on an earlier one, is a regression even where the record
    does not repeat the baseline's result: baselines pass held-out cases, and no candidate may shrink its own
    denominator.
    """
    if not ran or result.split is Split.SEEN or Status.HARNESS_ERROR in (result.baseline, result.candidate):
        return None
    if result.baseline is Status.NOT_RUN:
        return HeldoutOutcome.REGRESSION if result.candidate is Status.NOT_RUN else None
    passes = result.candidate in CORRECT
    if result.baseline in CORRECT:
        return HeldoutOutcome.BOTH_PASS if passes else HeldoutOutcome.REGRESSION
    return HeldoutOutcome.IMPROVEMENT if passes else HeldoutOutcome.BOTH_FAIL


def case_cells(result: CaseResult, outcome: HeldoutOutcome | None) -> dict[str, Cell]:
    """Return the cells of a case by column: statuses, error over tolerance, latencies in ms and the speedup."""
    timing = result.timing
    cells: dict[str, Cell] = {"case": result.case, "split": str(result.split), "kind": result.kind}
    cells |= {"shape": result.label, "baseline": str(result.baseline), "candidate": str(result.candidate)}
    cells |= {"outcome": str(outcome) if outcome else None, "error_ratio": result.error_ratio}
    cells |= estimate_cells("baseline_ms", timing.baseline_ms if timing else None)
    cells |= estimate_cells("candidate_ms", timing.candidate_ms if timing else None)
    cells |= estimate_cells("speedup", result.speedup)
    cells |= {"roofline_fraction": timing.roofline_fraction if timing else None}
    cells |= {"mode": str(timing.mode) if timing else None, "noisy": timing is not None and timing.noisy}
    return cells | {"detail": result.detail}


def evaluation_frame(evaluation: Evaluation) -> pd.DataFrame:
    """Return one row per case of an evaluation."""
    import pandas as pd

    ran = heldout_ran(evaluation)
    return pd.DataFrame([case_cells(result, heldout_outcome(result, ran)) for result in evaluation.cases])


def estimate_cells(name: str, value: Estimate | None) -> dict[str, Cell]:
    """Return an estimate as three cells: its value, and the bounds of its 95 % interval."""
    known = (value.value, value.low, value.high) if value else (None, None, None)
    return dict(zip((name, f"{name}_low", f"{name}_high"), known, strict=True))


def estimate_of(cells: Mapping[str, object], name: str) -> Estimate | None:
    """Return the estimate that `estimate_cells` made cells of."""
    value, low, high = (cells[key] for key in (name, f"{name}_low", f"{name}_high"))
    if not (isinstance(value, float) and isinstance(low, float) and isinstance(high, float)):
        return None
    return Estimate(value, low, high) if value == value else None  # NaN: no value, in a frame of numbers
