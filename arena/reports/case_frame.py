"""One case as named cells: what `Result.cases`, `cases.csv`, the terminal and the report's page are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arena.results.failures import failure_class
from arena.results.outcome import HeldoutOutcome, heldout_outcome, heldout_ran
from arena.results.record import CaseResult, Estimate, Evaluation

if TYPE_CHECKING:
    import pandas as pd

Cell = str | int | float | bool | None


def case_cells(result: CaseResult, outcome: HeldoutOutcome | None) -> dict[str, Cell]:
    """Return the cells of a case by column: statuses, error over tolerance, latencies in ms and the speedup."""
    timing, failed = result.timing, failure_class(result)
    cells: dict[str, Cell] = {"case": result.case, "split": str(result.split), "kind": result.kind}
    cells |= {"regime": result.regime, "shape": result.label}
    cells |= {"baseline": str(result.baseline), "candidate": str(result.candidate)}
    cells |= {"outcome": str(outcome) if outcome else None, "failure": failed and str(failed)}
    cells |= {"error_ratio": result.error_ratio}
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
