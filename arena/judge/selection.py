"""Which cases an evaluation runs: all of them on a GPU, the small ones where kernels are emulated."""

from __future__ import annotations

from arena.model.task import Arguments, Case, Task, arguments

_LEAST_CASES = 2


def declared_work(worked_out: Arguments) -> float:
    """Operations plus bytes of one call: a rough measure of what an emulation has to do."""
    return worked_out.flops + worked_out.num_bytes


def select_cases(task: Task, cases: tuple[Case, ...], max_work: float | None) -> tuple[Case, ...]:
    """The cases whose declared work is at most `max_work`, in order; the two smallest where fewer than two are."""
    if max_work is None:
        return cases
    work = {case.id: declared_work(arguments(task, case)) for case in cases}
    smallest = sorted(work, key=lambda case_id: work[case_id])[:_LEAST_CASES]
    return tuple(case for case in cases if work[case.id] <= max_work or case.id in smallest)
