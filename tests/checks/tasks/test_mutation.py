"""Mutants in general: how long a call of one may take, what builds them together, and their names."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from arena.checks.tasks import mutation
from arena.checks.tasks.mutants.base import Fault, Mutant
from arena.errors import InfrastructureError
from arena.judge.correctness.stage import CorrectnessCheck
from arena.platforms.toolchains.base import BuildFailed
from arena.results.check import MutantFate
from arena.results.verdict import Status
from tests.shipped import shipped_tasks


@pytest.mark.parametrize(
    ("took_s", "limits_s"),
    [((0.1, 10.0), {"0": 3.0, "1": 10.0}), ((0.1, 20.0, 7.0), {"0": 3.0, "2": 7.0}), ((200.0, 500.0), {"0": 60.0})],
)
def test_a_call_may_take_as_long_as_the_kernel_takes_for_the_case(
    monkeypatch: pytest.MonkeyPatch, took_s: tuple[float, ...], limits_s: dict[str, float]
) -> None:
    """A slow or busy machine would otherwise take a slow mutant for one without end, which counts as rejected."""
    clock = iter([seconds for took in took_s for seconds in (100.0, 100.0 + took)])
    monkeypatch.setattr("arena.checks.tasks.mutation.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(mutation, "_fate", lambda *_: None)
    check = CorrectnessCheck(cast(Any, None), cast(Any, None), 3, 60.0)
    cases = [SimpleNamespace(id=str(number)) for number in range(len(took_s))]
    found = mutation._limited(*cast(Any, (None, cases, check, None)))
    assert {case.id: one.timeout_s for case, one in found} == pytest.approx(limits_s)


def test_a_mutant_that_a_few_cases_let_through_meets_all_others() -> None:
    for name in ("triton2triton/normalization/fla_layernorm", "hip2hip/modules/gather_rows"):
        task = shipped_tasks()[name]
        few, *others = mutation.cases_by_dtypes(task, task.cases)
        assert len(few) < len(task.cases) / 2
        assert sorted(case.id for group in (few, *others) for case in group) == sorted(case.id for case in task.cases)


@pytest.mark.parametrize("name", ["4:29 term", "4:29 term 2", "x:1 term", "x term"])
def test_a_name_tells_the_kind_of_fault(name: str) -> None:
    assert MutantFate(name, 4, "", Status.PASSED).operator == "term"


@pytest.mark.parametrize("said", ["took longer than 300 s", "m0:3: error: no such name"])
def test_a_build_of_mutants_that_fails_for_no_mutants_sake_is_no_verdict_on_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    """They would otherwise count as mutants that do not build, and the score would be that of the others."""
    toolchain = SimpleNamespace(build=lambda *_: BuildFailed(said, 300.0, timed_out=True))
    monkeypatch.setattr(mutation, "toolchain_for", lambda target: toolchain)
    task = shipped_tasks()["hip2hip/modules/softmax"]
    assert task.baseline_kernel is not None
    text = task.baseline_kernel.read_text(encoding="utf-8")
    chosen = [Mutant(f"{line}:1 term", Fault.TERM, line, "", text) for line in range(6)]
    with pytest.raises(InfrastructureError, match=f"do not build together: {said}"):
        mutation._hip_programs(task, chosen, task.seen[0], tmp_path)
