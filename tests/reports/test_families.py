"""The measure that weights families of tasks equally, against numbers computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from arena.reports.intervals import Method
from arena.reports.measure import over_families
from arena.reports.measures import BY_NAME
from arena.runs.records import RunRecords

from . import builders as b
from .test_measures import overall, value


def in_families(run: RunRecords, *families: str) -> RunRecords:
    return replace(run, info=replace(run.info, families=dict(zip(run.info.tasks, families, strict=True))))


def test_families_weigh_the_same() -> None:
    """Two products of 16× and 4×, one that failed (1×), and a sort of 3×: (16 · 4 · 1)^(1/3) = 4, √(4 · 3)."""
    run = b.simple([16.0, 4.0, None, 3.0])
    found = overall(in_families(run, "product", "product", "product", "sort"))
    assert value(found, "gain") == pytest.approx((16 * 4 * 3) ** (1 / 4))
    assert value(found, "family_gain") == pytest.approx(math.sqrt(12))
    quantity = found.mean["family_gain"]
    assert quantity is not None and (quantity.tasks, quantity.method) == (2, Method.BOOTSTRAP_AND_TIMING)
    assert quantity.low is not None and quantity.high is not None
    assert quantity.low <= 3 and quantity.high >= 4  # the draws that hold one family alone


def test_the_error_of_a_family_is_that_of_its_mean() -> None:
    """Two tasks of one family: the mean of their logarithms has 1/√2 of a task's error."""
    quantity = overall(in_families(b.simple([2.0, 2.0]), "a", "a")).mean["family_gain"]
    single = overall(in_families(b.simple([2.0]), "a")).mean["family_gain"]
    assert quantity is not None and single is not None and quantity.method is single.method is Method.TIMING
    assert quantity.high is not None and single.high is not None
    assert math.log(quantity.high / 2) == pytest.approx(math.log(single.high / 2) / math.sqrt(2))


def test_the_best_attempt_counts_in_a_family() -> None:
    trials = [
        b.trial(f"hip2hip/m/{name}", cases=[b.case("s1", speed), b.heldout()], attempt=attempt)
        for name, speeds in (("a", (2.0, 8.0)), ("b", (2.0, 2.0)))
        for attempt, speed in enumerate(speeds, 1)
    ]
    found = overall(in_families(b.run(trials, attempts=2), "x", "x"))
    assert value(found, "family_gain", best=True) == pytest.approx(4.0)
    assert value(found, "family_gain") == pytest.approx(math.sqrt(4 * 2))


def test_a_run_that_stores_no_families_has_no_mean_over_them() -> None:
    assert overall(b.simple([2.0, 3.0])).mean["family_gain"] is None


def test_a_share_is_no_mean_over_tasks() -> None:
    with pytest.raises(ValueError, match="fast_p_none is no mean over tasks"):
        over_families(replace(BY_NAME["fast_1"], name="fast_p_none", best=None), "x", "x")
