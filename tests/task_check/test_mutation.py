"""Mutants in general: how long a call of one may take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from arena.judge.correctness import CorrectnessCheck
from arena.model.check import MutantFate
from arena.model.verdict import Status
from arena.task_check import mutation


@pytest.mark.parametrize(
    ("took_s", "limits_s"),
    [((0.1, 10.0), {"0": 3.0, "1": 10.0}), ((0.1, 20.0, 7.0), {"0": 3.0, "2": 7.0}), ((200.0, 500.0), {"0": 60.0})],
)
def test_a_call_may_take_as_long_as_the_kernel_takes_for_the_case(
    monkeypatch: pytest.MonkeyPatch, took_s: tuple[float, ...], limits_s: dict[str, float]
) -> None:
    """A slow or busy machine would otherwise take a slow mutant for one without end, which counts as rejected."""
    clock = iter([seconds for took in took_s for seconds in (100.0, 100.0 + took)])
    monkeypatch.setattr("arena.task_check.mutation.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(mutation, "_fate", lambda *_: None)
    check = CorrectnessCheck(cast(Any, None), cast(Any, None), 3, 60.0)
    cases = [SimpleNamespace(id=str(number)) for number in range(len(took_s))]
    found = mutation._limited(*cast(Any, (None, cases, check, None)))
    assert {case.id: one.timeout_s for case, one in found} == pytest.approx(limits_s)


@pytest.mark.parametrize("name", ["4:29 term", "4:29 term 2", "x:1 term", "x term"])
def test_a_name_tells_the_kind_of_fault(name: str) -> None:
    assert MutantFate(name, 4, "", Status.PASSED).operator == "term"
