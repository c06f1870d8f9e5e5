"""`--profile`: where the time of a call goes. The candidate's own process says so, and nothing is judged by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import draw_secret
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.performance.counter_tools import TOOLS
from arena.judge.performance.counters import Side, compare_counters
from arena.judge.workers.program import WorkerProgram
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.toolchains.programs import find_program
from arena.processes.protocol import Call, Prepare
from arena.results.portability import TargetBuild
from arena.results.profile import CounterTable, KernelTime, Profile
from arena.results.record import CaseTiming
from arena.task.definition import Arguments

_MOST_KERNELS = 50


def profile_largest(
    check: CorrectnessCheck,
    worker_program: WorkerProgram | None,
    passed: Sequence[Arguments],
    targets: Sequence[TargetBuild],
    baseline: WorkerProgram,
    timings: Mapping[str, CaseTiming | None],
) -> Profile:
    """Profile the candidate, in a fresh worker, on the largest of the cases that it passed.

    Without a profiler, or where it fails, the answer says so: a profile changes no verdict. Where the vendor's tool is
    installed, hardware counters of baseline and candidate come with it. `timings`: by case.
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
        kernels = _profile(check, worker_program, largest)
    except CandidateFailed as failure:
        return Profile(case, detail=f"the profiler failed: {failure.status}: {failure.detail}", uses=uses)
    finally:
        worker_program.close()
    table = _counters(check, baseline, (worker_program, kernels), largest, timings.get(largest.case.id))
    return Profile(case, kernels[:_MOST_KERNELS], "" if kernels else "the profiler saw no kernel", uses, table)


def _counters(
    check: CorrectnessCheck, baseline: WorkerProgram, candidate: Side, largest: Arguments, timing: CaseTiming | None
) -> CounterTable | None:
    """Count with the platform's tool, once the profiler has said how many kernels a call of the baseline has."""
    tool = TOOLS.get(check.platform.name)
    if tool is None:
        return None
    kernels: tuple[KernelTime, ...] = ()
    if find_program(tool.program) is not None:
        baseline.close()
        with suppress(CandidateFailed):
            kernels = _profile(check, baseline, largest)
        baseline.close()
    return compare_counters(check, tool, (baseline, kernels), candidate, largest, timing)


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
