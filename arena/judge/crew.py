"""Hosts of one program, among which cases are shared out to be checked: many kernels are compiled side by side."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Collection, Iterator, Sequence

from arena.judge.correctness import CorrectnessCheck
from arena.judge.subject import Subject
from arena.judge.verify import Finding
from arena.judge.wave_size import at_both_wave_sizes
from arena.model.environment import DeviceFacts
from arena.model.task import Case, Task, TaskType, arguments
from arena.model.verdict import Status
from arena.sharing import share_out

Member = tuple[Subject, ...]
"""a host, and with it one at the other wave size where a program has to be right at both"""
_MOST = 6
_WORTH_A_HOST_S = 2.0


def crew_size(task: Task, facts: DeviceFacts, num_cases: int, compile_s: float = math.inf) -> int:
    """How many hosts: one, but on a GPU for Triton, which compiles in them, more if that is likely to take a while.

    `compile_s`: the seconds that the first call took. To wake the device up in a host costs a fifth of one, by itself.
    """
    if task.task_type is not TaskType.TRITON2TRITON or facts.emulated:
        return 1
    most = max(1, min(_MOST, (os.cpu_count() or 1) // 2, num_cases))
    return int(min(most, 1 + compile_s * num_cases / _WORTH_A_HOST_S))


def check_cases(
    task: Task,
    cases: Sequence[Case],
    crew: Sequence[Member],
    right: CorrectnessCheck,
    hopeless: Collection[Status] = (),
) -> Iterator[tuple[Case, Finding]]:
    """What is found in each case, in any order. After a status that is `hopeless` none begins any more."""
    over = threading.Event()

    def one(case: Case, member: Member) -> tuple[Case, Finding | None]:
        if over.is_set():
            return case, None
        finding, *others = [right.run(subject, arguments(task, case)) for subject in member]
        finding = at_both_wave_sizes(finding, others[0]) if others else finding
        if finding.status in hopeless:
            over.set()
        return case, finding

    for case, found in share_out(cases, crew, one, _close):
        if found is not None:
            yield case, found


def _close(member: Member) -> None:
    for subject in member:
        subject.close()
