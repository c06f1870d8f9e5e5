"""Launches of cases that are too large to emulate: host code of the candidate runs, its kernels hardly do.

Buffers are zeros that take no memory, so a case of many gigabytes costs next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import draw_secret
from arena.judge.correctness.verify import OutputCheck
from arena.judge.workers.program import WorkerProgram
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.base import Platform
from arena.processes.protocol import ENDS_ONLY, LAUNCH_ONLY, Blame, Call, Prepare
from arena.task.definition import FLOATING, Arguments, Case, arguments
from arena.task.numerics.fills import is_custom
from arena.task.numerics.reference import Reference

_ADDRESSED = 2**31
"""elements that an offset of 32 bits reaches"""
_APART = 8 * _ADDRESSED
"""bytes between two tensors: an offset that wraps ends in no other tensor"""
_TIMEOUT_S, _ENOUGH_S = 5.0, 10.0
"""of one call, and of all: host code may copy or fill what is large"""
_MOST_CUSTOM_BYTES = 1 << 26


def check_launches(
    platform: Platform, worker_program: WorkerProgram, reference: Reference, cases: Sequence[Case]
) -> tuple[Case, OutputCheck] | None:
    """Call on each of these cases and check the grids; where offsets need 64 bits, also the ends of each launch.

    Host code may stumble over zeros: another failure ends the check and says nothing. Cases for which nothing has been
    built are left out.

    Args:
        platform: the CPU platform.
        worker_program: the candidate.
        reference: of the task, for valid indices.
        cases: cases that are not emulated.

    Returns:
        The first case with a grid that no GPU launches, or whose first or last program uses memory outside of every
        argument, with what is wrong.
    """
    program, began = worker_program.program, time.monotonic()
    built = [arguments(program.task, case) for case in cases if program.key(case) in program.files]
    run = {one.case.id for one in built if program.task.task_type.triton and _needs_64_bits(one)}
    for worked_out in sorted(built, key=lambda one: one.case.id in run):
        case, ends = worked_out.case, worked_out.case.id in run
        if time.monotonic() - began > _ENOUGH_S:
            break
        with closing(Sets(platform, worked_out, 1, apart=_APART if ends else 0)) as sets:
            if ends and _has_indices(worked_out):
                sets.write(draw_secret(worked_out, reference, 1, platform.torch_device, data=False))
            try:
                worker = worker_program.ready(case)
                worker.ask(sets.bind_message(), _TIMEOUT_S, sets.files)
                worker.ask(Prepare(), _TIMEOUT_S)
                worker.ask(Call(0, ENDS_ONLY if ends else LAUNCH_ONLY), _TIMEOUT_S)
                worker.release(_TIMEOUT_S)
            except CandidateFailed as failure:
                worker_program.close()
                if failure.blame is Blame.GRID_LIMIT or (ends and failure.blame is Blame.LAUNCH_ERROR):
                    return case, OutputCheck(failure.status, failure.detail)
                break
    return None


def _needs_64_bits(worked_out: Arguments) -> bool:
    """Return whether a tensor has more elements than 32 bits count, and the case's indices are drawn in little time."""
    tensors = (*worked_out.inputs, *worked_out.outputs)
    custom = sum(one.numel * one.item_bytes for one in worked_out.inputs if is_custom(one.spec.fill))
    drawable = custom <= _MOST_CUSTOM_BYTES or not _has_indices(worked_out)
    return drawable and any(one.offset + one.span > _ADDRESSED for one in tensors)


def _has_indices(worked_out: Arguments) -> bool:
    """Return whether an input may be something else than zeros: where there is none, nothing needs to be drawn."""
    return any(one.dtype not in FLOATING for one in worked_out.inputs)
