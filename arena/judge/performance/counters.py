"""Hardware counters of one call, by the vendor's profiler: feedback, like the profile, and nothing is judged by it.

The profiler starts the program (`arena/worker/profiled_run.py`) in an empty network of their own. Its figures come
through the process of the candidate, which can say what it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import draw_secret
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.performance.counter_tools import CounterTool
from arena.judge.workers.environment import clean_environment
from arena.judge.workers.program import WorkerProgram
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.toolchains.programs import find_program
from arena.processes import process
from arena.processes.protocol import ProfiledRun
from arena.processes.python_child import python_module
from arena.processes.sandbox import network
from arena.processes.scratch import scratch
from arena.results.profile import Counters, CounterTable, KernelTime
from arena.results.record import CaseTiming
from arena.results.verdict import Status
from arena.task.definition import Arguments

_MOST_BYTES = 1 << 30
_TIMEOUT_S = 240.0
_NO_KERNELS = ("Memcpy", "Memset", "__amd_rocclr_")
Side = tuple[WorkerProgram, Sequence[KernelTime]]
"""a program, and the kernels of one of its calls"""


def compare_counters(
    check: CorrectnessCheck,
    tool: CounterTool,
    baseline: Side,
    candidate: Side,
    worked_out: Arguments,
    timing: CaseTiming | None,
) -> CounterTable:
    """Count both sides on one case.

    What cannot be counted is said in `detail`, in one line. Where the case was timed, the fractions of the roofline are
    those of the measured times, since a profiler slows kernels down.
    """
    (before, problem), (after, other) = (count(check, tool, side, worked_out) for side in (baseline, candidate))
    told = ((problem, "baseline"), (other, "candidate"))
    detail = problem if problem == other else "; ".join(f"{name}: {text}" for text, name in told if text)
    roofline_ms = timing.roofline_ms if timing else None
    if timing is None or roofline_ms is None:
        return CounterTable(tool.program, before, after, detail)
    fractions = (roofline_ms / one.value for one in (timing.baseline_ms, timing.candidate_ms))
    return CounterTable(tool.program, before, after, detail, *fractions)


def count(check: CorrectnessCheck, tool: CounterTool, side: Side, worked_out: Arguments) -> tuple[Counters | None, str]:
    """Return the counters of the second call of a program, or why there are none."""
    program = find_program(tool.program)
    if program is None:
        return None, f"{tool.program} is not installed; {tool.install}"
    worker_program, kernels = side
    launches = sum(kernel.calls for kernel in kernels if not kernel.kernel.startswith(_NO_KERNELS))
    if not launches:
        return None, "the call launched no kernel that could be counted"
    with scratch("counters") as name:
        folder = Path(name)
        home = folder / "home"
        home.mkdir()
        try:
            file = _written(check, worker_program, worked_out, folder, home)
        except CandidateFailed as failure:
            return None, failure.detail
        command = [
            str(program),
            *tool.command(home, check.platform.facts().arch),
            *python_module("arena.worker.profiled_run", str(file)),
        ]
        environment = {**clean_environment(interprets=check.platform.name == "cpu"), "TMPDIR": str(home)}
        line = network.starting(command, shared=True, loopback=True)
        done = process.run(line, timeout_s=_TIMEOUT_S, cwd=home, env={**environment, "HOME": str(home)})
        found = tool.read(home, done.output, launches)
    return found, "" if found is not None else tool.problem(done.output)


def _written(
    check: CorrectnessCheck, worker_program: WorkerProgram, worked_out: Arguments, folder: Path, home: Path
) -> Path:
    """Write what to run, with the data of two sets. Raises `CandidateFailed` where the data are too large for that."""
    sets = Sets(check.platform, worked_out, 2)
    try:
        if sets.raw.numel() > _MOST_BYTES:
            raise CandidateFailed(Status.NOT_RUN, f"the case has {sets.raw.numel()} bytes, of at most {_MOST_BYTES}")
        sets.write(draw_secret(worked_out, check.reference, 2, check.platform.torch_device))
        check.platform.synchronize()
        data, file = folder / "data", folder / "profiled_run.json"
        sets.raw.cpu().numpy().tofile(data)
        spawn, load = worker_program.elsewhere(worked_out.case, home)
        file.write_bytes(
            msgspec.json.encode(ProfiledRun(check.platform.name, spawn, load, sets.bind_message(), str(data)))
        )
        return file
    finally:
        sets.close()
