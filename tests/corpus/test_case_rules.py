"""What the cases of every shipped task must cover: docs/contribute/check-failures.md lists the rules.

A task that cannot keep a rule gives its reason in task.yaml, under `exceptions`, by the rule's name.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from arena.corpus.corpora import open_corpora
from arena.model.task import FLOATING, Case, Task, TensorSpec, arguments
from arena.platforms.peaks import find_peaks
from tests.shipped import shipped_tasks

REACH = 4
"""an axis is tested at this part of its domain's greatest size or above"""
LEAST_HELDOUT, LEAST_KINDS = 8, 5
STRUCTURAL = ("edge", "dtype", "structure")
LONG_S = 20e-6


def unexcused(rule: str, tasks: Iterator[tuple[Task, str]]) -> list[str]:
    """What breaks a rule without a reason in task.yaml."""
    return [f"{task.id}: {said}" for task, said in tasks if rule not in task.exceptions]


@pytest.mark.parametrize("task_id", open_corpora().ids)
def test_every_axis_is_tested_near_the_end_of_its_domain(task_id: str) -> None:
    task = shipped_tasks()[task_id]
    for axis in task.axes:
        greatest = max(int(case.values[axis.name]) for case in task.cases)
        said = f"{axis.name} is at most {greatest}, its domain ends at {axis.high}"
        assert axis.high <= REACH * greatest or f"reach of {axis.name}" in task.exceptions, said


def test_every_task_has_eight_held_out_cases_of_five_kinds() -> None:
    few = (
        (task, f"{len(task.heldout)} cases") for task in shipped_tasks().values() if len(task.heldout) < LEAST_HELDOUT
    )
    assert unexcused("held-out cases", few) == []
    kinds = {task.id: {case.kind for case in task.heldout} for task in shipped_tasks().values()}
    alike = ((task, f"{kinds[task.id]}") for task in shipped_tasks().values() if len(kinds[task.id]) < LEAST_KINDS)
    assert unexcused("held-out kinds", alike) == []


@pytest.mark.parametrize("kind", ["production", "scale_up"])
def test_every_task_is_tested_at_sizes_of_production_and_beyond(kind: str) -> None:
    without = ((t, "no such case") for t in shipped_tasks().values() if kind not in {case.kind for case in t.heldout})
    assert unexcused(f"{kind} case", without) == []


def test_structure_is_also_tested_at_sizes_that_take_long() -> None:
    without = (
        (task, "no such case")
        for task in shipped_tasks().values()
        if not task.latency_bound
        and not any(case.kind in STRUCTURAL and takes_long(task, case) for case in task.heldout)
    )
    assert unexcused("long structural case", without) == []


def test_held_out_cases_draw_values_that_seen_cases_do_not() -> None:
    without = ((t, "no such case") for t in shipped_tasks().values() if has_numbers(t) and not draws_otherwise(t))
    assert unexcused("values case", without) == []


def test_no_exception_outlives_its_reason() -> None:
    """A rule that a task keeps is not among its exceptions."""
    for task in shipped_tasks().values():
        kinds = {case.kind for case in task.heldout}
        kept = {
            "held-out cases": len(task.heldout) >= LEAST_HELDOUT,
            "held-out kinds": len(kinds) >= LEAST_KINDS,
            "production case": "production" in kinds,
            "scale_up case": "scale_up" in kinds,
            "long structural case": any(c.kind in STRUCTURAL and takes_long(task, c) for c in task.heldout),
            "values case": draws_otherwise(task),
        }
        assert [rule for rule, holds in kept.items() if holds and rule in task.exceptions] == [], task.id


def takes_long(task: Task, case: Case) -> bool:
    """Whether a call takes 20 µs or more on an H200.

    A timed case does, by the item `long enough` of `arena tasks check`, and so does what moves and computes no less.
    Of others the roofline decides.
    """
    if case.timed:
        return True
    worked_out = arguments(task, case)
    timed = [arguments(task, other) for other in task.cases if other.timed]
    if any(worked_out.num_bytes >= other.num_bytes and worked_out.flops >= other.flops for other in timed):
        return True
    peaks = find_peaks("NVIDIA H200", "sm_90")
    assert peaks is not None
    rate = peaks.tflops.get(worked_out.number_format, peaks.tflops["float32"])
    return max(worked_out.num_bytes / (peaks.bandwidth_gbs * 1e9), worked_out.flops / (rate * 1e12)) >= LONG_S


def has_numbers(task: Task) -> bool:
    """Whether an input may be of a floating-point dtype."""
    for spec in task.inputs:
        if isinstance(spec, TensorSpec):
            choices = task.dtypes[spec.dtype[1:]] if spec.dtype.startswith("$") else (task.format(spec.dtype),)
            if any(task.format(dtype) in FLOATING for dtype in choices):
                return True
    return False


def draws_otherwise(task: Task) -> bool:
    return any(case.fills for case in task.heldout)
