"""The compile stage without a device: what is refused here never takes a turn at one.

HIP goes through the judge's own build, whose cache then holds what the judge asks for. Triton kernels are compiled by
launches that run nothing (`cross_compile.py`). On the CPU platform they are interpreted: the file is only loaded.
"""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

from arena.corpus.task_folder import hidden_from_candidates
from arena.judge import rules
from arena.judge.building import build_program
from arena.judge.cross_compile import CrossCompilation, Limit
from arena.judge.messages import Options
from arena.judge.refusals import refusal
from arena.judge.selection import bounded, select_cases
from arena.judge.wave_size import build_other_wave
from arena.judge.worker_program import Program, WorkerProgram
from arena.judge.workers import CandidateFailed, ForkServers
from arena.model.environment import Environment
from arena.model.portability import TargetBuild
from arena.model.record import Evaluation
from arena.model.task import Case, Task
from arena.model.verdict import Stage, Verdict
from arena.protocol import Language
from arena.scratch import scratch


class Builder:
    """Compiles candidates for devices that it never touches. Thread-safe."""

    def __init__(self) -> None:
        self._cross_compilation = CrossCompilation()
        self._interpreting: ForkServers | None = None
        self._one_at_a_time = threading.Lock()

    def compile(self, task: Task, candidate: Path, options: Options, environment: Environment) -> Evaluation | None:
        """The evaluation of a candidate that would not get past the judge's compile stage; None for any other."""
        job = _Job(task, bounded(options, environment.device), environment)
        started = time.monotonic()
        with scratch("candidate") as folder:
            file = Path(folder) / task.task_type.kernel_file  # the name is part of the build cache's key
            shutil.copyfile(candidate, file)
            failure = self._failure(job, file)
            if failure is None:
                return None
            seconds = time.monotonic() - started
            verdict = Verdict(Stage.COMPILE, failure.status, failure.detail, seconds)
            return refusal(task, file, job.cases, environment, verdict, self._cross(job, file))

    def close(self) -> None:
        """End the templates, and with them every worker."""
        self._cross_compilation.close()
        if self._interpreting is not None:
            self._interpreting.close()

    def _failure(self, job: _Job, file: Path) -> CandidateFailed | None:
        try:
            rules.check(job.task.task_type, file)
        except CandidateFailed as failure:
            return failure
        if not job.task.task_type.triton:
            return _build_hip(job, file)
        if job.facts.emulated:
            return self._load(job, file)
        return self._cross_compilation.refuse_triton(job.task, file, job.seen, job.facts.arch, job.limit)

    def _load(self, job: _Job, file: Path) -> CandidateFailed | None:
        """Have a worker load the file, as the judge's will: an import that fails, a syntax error, a missing entry."""
        program = Program(job.task, Language.TRITON, {"": file})
        worker_program = WorkerProgram(self._fork_servers, None, job.limit.hide, job.limit.timeout_s).adopt(program)
        try:
            worker_program.ready(job.seen[0])
        except CandidateFailed as failure:
            return failure
        finally:
            worker_program.discard()
        return None

    def _cross(self, job: _Job, file: Path) -> tuple[TargetBuild, ...]:
        """For a candidate that is refused: the GPUs asked for beside its own, as the judge builds for them."""
        cases = (*job.task.seen, *(job.task.heldout if job.options.heldout else ()))
        targets = job.options.targets
        return self._cross_compilation.build(job.task, file, cases, targets, job.limit, lambda done, total: None)

    @property
    def _fork_servers(self) -> ForkServers:
        with self._one_at_a_time:
            if self._interpreting is None:
                self._interpreting = ForkServers("cpu", spins=False, interprets=True)
            return self._interpreting


class _Job:
    """One request, worked out."""

    def __init__(self, task: Task, options: Options, environment: Environment) -> None:
        self.task, self.options, self.environment = task, options, environment
        self.facts = environment.device
        self.seen = select_cases(task, task.seen, options.max_work)
        heldout = select_cases(task, task.heldout, options.max_work) if options.heldout else ()
        self.cases: tuple[Case, ...] = (*self.seen, *heldout)
        self.limit = Limit(options.call_timeout_s, hidden_from_candidates(task))


def _build_hip(job: _Job, file: Path) -> CandidateFailed | None:
    """The judge's build, for every dtype that it will need, on the CPU platform at both wave sizes."""
    try:
        build_program(job.task, file, job.cases, job.facts)
        build_other_wave(job.task, file, job.cases, job.facts)
    except CandidateFailed as failure:
        return failure
    return None
