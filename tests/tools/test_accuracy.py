"""`tools/calibration.py` with a run counts what the records of a run say of the harness."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.results.record import CaseResult, Estimate, Round
from tests.reports import builders as b
from tests.tools import load

FLAT = tuple(Round(1e-3, 1e-3, 11e-3, 11e-3, swapped=swapped) for swapped in (False, False, True, True))


def of(low: float, value: float, high: float, baseline_ms: float = 1.0) -> CaseResult:
    """A case with this speedup, whose baseline takes a tenth longer beside the candidate than alone."""
    case = b.case(baseline_ms=baseline_ms)
    assert case.timing is not None
    alone = b.estimate(1 / 1.1)
    timing = replace(case.timing, speedup=Estimate(value, low, high), rounds=FLAT, alone_ms=alone)
    return replace(case, timing=replace(timing, calls_short=1, calls_long=11))


def test_it_says_how_far_off_a_kernel_against_itself_is(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [of(0.99, 1.0, 1.01), of(1.001, 1.004, 1.006), of(0.96, 0.97, 1.02), of(0.9, 1.0, 1.1, baseline_ms=0.004)]
    run = b.run([b.trial(agent="noop", cases=cases), b.trial(agent="expert", cases=[of(1.9, 2.0, 2.1)])])
    tool = load("figures.accuracy")
    tool.print_noop(run)
    said = capsys.readouterr().out
    assert "A/A, 20 µs and more: 3 with median 0.40%, worst 3.00%, 1 above 1%, 1 above 2%" in said
    assert "intervals hold 1 in 2 (66.7%)" in said
    assert "A/A, 0 to 5 µs: 1 with median 0.00%" in said
    assert "A/A of whole trials: 1 with" in said
    assert said.index("0.9700 [0.9600, 1.0200]") < said.index("1.0040 [1.0010, 1.0060]"), "the worst first"


def test_it_says_how_far_a_baseline_moves(capsys: pytest.CaptureFixture[str]) -> None:
    tool = load("figures.accuracy")
    tool.print_drift([b.trial(cases=[of(0.9, 1.0, 1.1)] * 3)])
    assert "drift, 20 µs and more: 3 cases; nine in ten within 10.0%" in capsys.readouterr().out
