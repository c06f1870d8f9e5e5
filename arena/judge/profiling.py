"""`--profile`: where the time of a call goes. The candidate's own process says so, and nothing is judged by it."""

from __future__ import annotations

from collections.abc import Sequence

from arena.judge.buffers import Sets
from arena.judge.correctness import CorrectnessCheck
from arena.judge.inputs import draw_secret
from arena.judge.worker_program import WorkerProgram
from arena.judge.workers import CandidateFailed
from arena.model.portability import TargetBuild
from arena.model.profile import KernelTime, Profile
from arena.model.task import Arguments
from arena.protocol import Call, Prepare

_MOST_KERNELS = 50


def profile_largest(
    check: CorrectnessCheck,
    worker_program: WorkerProgram | None,
    passed: Sequence[Arguments],
    targets: Sequence[TargetBuild],
) -> Profile:
    """Profile the candidate, in a fresh worker, on the largest of the cases that it passed.

    Without a profiler, or where it fails, the answer says so: a profile changes no verdict.
    """
    uses = {build.target: build.kernels for build in targets if build.kernels}
    if worker_program is None or not passed:
        return Profile(detail="no seen case was passed, so that nothing was profiled", uses=uses)
    largest = max(passed, key=lambda each: each.num_bytes)
    case = largest.case.label
    if not check.platform.graphs:
        return Profile(case, detail=f"the {check.platform.name} platform has no profiler for kernels", uses=uses)
    worker_program.close()
    try:
        kernels = _profile(check, worker_program, largest)[:_MOST_KERNELS]
    except CandidateFailed as failure:
        return Profile(case, detail=f"the profiler failed: {failure.status}: {failure.detail}", uses=uses)
    finally:
        worker_program.close()
    return Profile(case, kernels, "" if kernels else "the profiler saw no kernel", uses)


def _profile(check: CorrectnessCheck, worker_program: WorkerProgram, worked_out: Arguments) -> tuple[KernelTime, ...]:
    """Call once to compile and warm up, then once under the profiler."""
    sets = Sets(check.platform, worked_out, 2)
    try:
        sets.write(draw_secret(worked_out, check.reference, 2, check.platform.torch_device))
        check.platform.synchronize()
        worker = worker_program.ready_for_profiler(worked_out.case)
        worker.ask(sets.bind_message(), check.timeout_s, sets.files)
        worker.ask(Prepare(), check.timeout_s)
        worker.ask(Call(0), check.timeout_s)
        kernels = worker.profile(1, check.timeout_s)
        worker.release(check.timeout_s)
        return kernels
    except CandidateFailed:
        worker_program.close()  # before the buffers, which it has mapped
        raise
    finally:
        sets.close()
