"""Which cases an emulation runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.judge.selection import bounded, emulation_work, is_timed, select_cases
from arena.results.effort import Effort
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import LARGE, arguments
from arena.task.options import CPU_MAX_WORK, Options
from tests.checks.doctor.fake_evidence import CPU, H200
from tests.shipped import shipped_tasks

SOFTMAX = TASKS / "hip2hip/modules/softmax"


@pytest.mark.slow
def test_every_task_has_two_cases_of_each_split_that_an_emulation_can_run() -> None:
    for task in shipped_tasks().values():
        for cases in (task.seen, task.heldout):
            small = [case for case in cases if emulation_work(arguments(task, case)) <= 1e6]
            assert len(small) >= 2, f"{task.id}: {len(small)} small cases"


@pytest.mark.slow
def test_without_a_bound_every_case_is_run() -> None:
    task = load_task(SOFTMAX)
    assert select_cases(task, task.seen, Options()) == task.seen


@pytest.mark.slow
def test_the_bound_keeps_the_order_and_at_least_two_cases() -> None:
    for task in shipped_tasks().values():
        chosen = select_cases(task, task.heldout, Options(max_work=CPU_MAX_WORK))
        assert list(chosen) == [case for case in task.heldout if case in chosen]
        assert len(select_cases(task, task.heldout, Options(max_work=1e-9))) == 2


def test_only_cases_that_are_named_run_and_in_the_order_of_the_task() -> None:
    task = load_task(SOFTMAX)
    last, first = task.seen[-1].id, task.seen[0].id
    assert select_cases(task, task.seen, Options(case=(last, first))) == (task.seen[0], task.seen[-1])
    assert select_cases(task, task.heldout, Options(case=(last, first))) == ()


@pytest.mark.slow
def test_a_large_cache_counts_although_little_of_it_is_touched() -> None:
    task = load_task(TASKS / "triton2triton/attention/chunked_prefill_paged_decode")
    one = next(case for case in task.heldout if case.note == "one long sequence")
    worked_out = arguments(task, one)
    cache = worked_out.tensors["key_cache"]
    assert cache is not None
    assert emulation_work(worked_out) >= worked_out.flops + 2 * cache.numel * cache.item_bytes


def test_the_speed_of_declared_cases_counts_and_of_all_in_an_emulation() -> None:
    task = load_task(SOFTMAX)
    timed = {case.id for case in task.seen if is_timed(case, H200, Effort.FULL)}
    assert timed == {case.id for case in task.seen if case.timed} and 2 <= len(timed) < len(task.seen)
    assert all(is_timed(case, CPU, Effort.FULL) for case in task.seen)


def test_large_cases_run_only_where_they_fit_the_device() -> None:
    task = load_task(SOFTMAX)
    large = replace(task.heldout[0], id="heldout-99", kind=LARGE)
    cases, held = (*task.heldout, large), arguments(task, large).held_bytes
    assert large in select_cases(task, cases, Options(max_held=held))
    assert select_cases(task, cases, Options(max_held=held - 1)) == task.heldout
    assert bounded(Options(), H200).max_held == H200.memory_bytes // 8
    assert bounded(Options(max_held=5), H200).max_held == 5
