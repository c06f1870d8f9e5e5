"""`tools/calibration.py` says which cases differ by more than their errors."""

from __future__ import annotations

from dataclasses import replace

from arena.results.record import Estimate, Evaluation
from tests.reports import builders as b
from tests.tools import load


def evaluated(speedup: float, baseline_ms: float = 1.0) -> Evaluation:
    case = b.case("s1", 1.0, baseline_ms=baseline_ms)
    assert case.timing is not None
    timing = replace(case.timing, speedup=Estimate(speedup, speedup / 1.01, speedup * 1.01))
    found = b.trial(cases=[replace(case, timing=timing), b.case("s2", None)]).evaluation
    assert found is not None
    return found


def test_a_case_differs_beyond_three_standard_errors() -> None:
    """An interval of ±1 % is a standard error of 0.51 %, that of a difference of two 0.72 %."""
    tool = load("calibration")
    same, apart = (tool.pairs("t", evaluated(1.0), evaluated(known)) for known in (1.02, 1.03))
    assert [pair.case for pair in same] == ["s1"]
    assert (same[0].differs, apart[0].differs) == (False, True)
    assert not tool.pairs("t", evaluated(1.0, 0.01), evaluated(1.03, 0.01))[0].differs, "clocks do not resolve it"


def test_twenty_tasks_are_chosen_and_those_that_spill_are_among_them() -> None:
    tool = load("calibration")
    chosen = tool.chosen([])
    assert len(set(chosen)) == 20 and set(tool.ALWAYS) <= set(chosen)
    assert tool.chosen(["rms_norm"]) == ["triton2triton/normalization/rms_norm"]
