"""Launches of cases that are too large to emulate: the candidate's host code runs, its kernels do not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.verify import OutputCheck
from arena.judge.workers.program import WorkerProgram
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.base import Platform
from arena.processes.protocol import LAUNCH_ONLY, Blame, Call, Prepare
from arena.results.messages import within
from arena.results.verdict import Status
from arena.task.definition import Case, arguments


def check_launches(
    platform: Platform, worker_program: WorkerProgram, cases: Sequence[Case], timeout_s: float
) -> OutputCheck:
    """Call on each of these cases, whose buffers are zeros that take no memory, and look at the grids alone.

    Host code may stumble over the zeros: another failure ends the check and says nothing. Cases for which nothing has
    been built are left out.

    Args:
        platform: the CPU platform.
        worker_program: the candidate.
        cases: cases that are not emulated.
        timeout_s: seconds of one call.

    Returns:
        `launch_error` for the first case with a grid that no GPU launches, else `passed`.
    """
    program = worker_program.program
    most = platform.memory().total_bytes
    for case in cases:
        worked_out = arguments(program.task, case)
        if program.key(case) not in program.files or worked_out.held_bytes > most:
            continue
        with closing(Sets(platform, worked_out, 1)) as sets:
            try:
                worker = worker_program.ready(case)
                worker.ask(sets.bind_message(), timeout_s, sets.files)
                worker.ask(Prepare(), timeout_s)
                worker.ask(Call(0, LAUNCH_ONLY), timeout_s)
                worker.release(timeout_s)
            except CandidateFailed as failure:
                worker_program.close()
                if failure.blame is Blame.GRID_LIMIT:
                    return OutputCheck(failure.status, within("in_case", failure.detail, case=case.label))
                break
    return OutputCheck(Status.PASSED)
