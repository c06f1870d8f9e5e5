"""Mutants in general: how long a call of one may take."""

from __future__ import annotations

from typing import Any, cast

import pytest

from arena.judge.correctness import CorrectnessCheck
from arena.task_check import mutation


@pytest.mark.parametrize(("took_s", "limit_s"), [(0.1, 3.0), (20.0, 20.0), (500.0, 60.0)])
def test_a_call_may_take_as_long_as_the_kernel_takes_for_the_case(
    monkeypatch: pytest.MonkeyPatch, took_s: float, limit_s: float
) -> None:
    """A slow or busy machine would otherwise take a slow mutant for one without end, which counts as rejected."""
    clock = iter([100.0, 100.0 + took_s])
    monkeypatch.setattr(mutation.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(mutation, "_fate", lambda *_: None)
    check = CorrectnessCheck(cast(Any, None), cast(Any, None), 3, 60.0)
    assert mutation._limited(*cast(Any, (None, None, check, None))).timeout_s == pytest.approx(limit_s)
