"""The compile stage without a device: what is refused here never takes a turn at one.

HIP goes through the judge's own build, whose cache then holds what the judge asks for. Triton kernels are compiled by
launches that run nothing (`ahead.py`), and handed over as Triton's cache. On the CPU platform they are interpreted: the
file is only loaded. The baseline of a task is compiled in the same way when the task is first asked for.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from arena.errors import ArenaError
from arena.judge.compile import rules
from arena.judge.compile.ahead import AheadCompiler, TritonKernel
from arena.judge.compile.cross_compile import CrossCompilation, Limit
from arena.judge.compile.extensions import ExtensionBuilder
from arena.judge.compile.refusals import refusal
from arena.judge.compile.stage import COMPILER_S, baseline_program, build_program, run_compiler
from arena.judge.correctness.wave_size import build_other_wave
from arena.judge.process.messages import HELDOUT, SEEN
from arena.judge.selection import bounded, select_cases
from arena.judge.workers.program import Program, WorkerProgram, triton_cache
from arena.judge.workers.worker import CandidateFailed, ForkServers
from arena.processes.protocol import Language
from arena.processes.scratch import scratch
from arena.results.environment import Environment
from arena.results.portability import TargetBuild
from arena.results.record import Evaluation
from arena.results.verdict import Stage, Verdict
from arena.task.corpus.task_folder import hidden_from_candidates
from arena.task.definition import Case, Task
from arena.task.options import Options


class Builder:
    """Compiles candidates for devices that it never touches. Thread-safe."""

    def __init__(self) -> None:
        self._cross_compilation = CrossCompilation()
        self._ahead = AheadCompiler(self._cross_compilation)
        self._extensions = ExtensionBuilder(self._cross_compilation, run_compiler, COMPILER_S)
        self._beside = ThreadPoolExecutor()
        self._interpreting: ForkServers | None = None
        self._one_at_a_time = threading.Lock()
        self._baselines: set[tuple[str, ...]] = set()

    def compile(
        self, task: Task, candidate: Path, options: Options, environment: Environment, into: Path | None = None
    ) -> Evaluation | None:
        """The evaluation of a candidate that would not get past the judge's compile stage; None for any other.

        `into`: the folder for its compiled Triton kernels, those of seen and of held-out cases apart.
        """
        job = _Job(task, bounded(options, environment.device), environment, into)
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
        """End the fork servers, and with them every worker."""
        self._beside.shutdown(cancel_futures=True)
        self._cross_compilation.close()
        if self._interpreting is not None:
            self._interpreting.close()

    def _failure(self, job: _Job, file: Path) -> CandidateFailed | None:
        try:
            rules.check(job.task, file)
        except CandidateFailed as broken:
            return broken
        if job.facts.emulated:
            return self._load(job, file) if job.task.task_type.triton else _build_hip(job, file)
        baseline = self._beside.submit(_helpful, self._baseline, job)
        failure = self._triton(job, file) if job.task.task_type.triton else _build_hip(job, file)
        if failure is None:
            wait([baseline])
        return failure

    def _triton(self, job: _Job, file: Path) -> CandidateFailed | None:
        """Compile for the seen cases, beside them for those that it has never seen: the judge finds what fails there.

        Workers of the one are not those of the other, and neither are the folders.
        """
        kernel, over = TritonKernel(job.task, file, job.facts.arch), threading.Event()
        try:
            program = Program(job.task, Language.TRITON, {"": file})
            with_extensions = self._extensions.complete(program, job.seen, job.facts, job.limit)
        except CandidateFailed as broken:
            return broken
        kernel = replace(kernel, extensions=with_extensions.extensions)
        if job.into is None:
            return self._ahead.compile(kernel, job.seen, job.limit, None, over)
        folders = {split: job.into / split for split in (SEEN, HELDOUT)}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        heldout = self._beside.submit(
            _helpful, self._ahead.compile, kernel, job.heldout, job.limit, folders[HELDOUT], over
        )
        try:
            apart = replace(job.limit, hide=(*job.limit.hide, folders[HELDOUT]))
            failure = self._ahead.compile(kernel, job.seen, apart, folders[SEEN], over)
            if failure is not None:
                over.set()
            return failure
        finally:
            wait([heldout])

    def _baseline(self, job: _Job) -> None:
        """Compile the task's own kernel, which the judge would do at its first launch, once for these cases."""
        key = (job.task.content_hash, *(case.id for case in job.cases))
        kernel = job.task.baseline_kernel
        with self._one_at_a_time:
            if kernel is None or key in self._baselines:
                return
            self._baselines.add(key)
        if job.task.task_type.triton:
            known = TritonKernel(job.task, kernel, job.facts.arch)
            self._ahead.compile(known, job.cases, job.limit, triton_cache(), threading.Event())
        else:
            baseline_program(job.task, job.cases, job.facts)

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

    def __init__(self, task: Task, options: Options, environment: Environment, into: Path | None) -> None:
        self.task, self.options, self.environment, self.into = task, options, environment, into
        self.facts = environment.device
        self.seen = select_cases(task, task.seen, options)
        self.heldout = select_cases(task, task.heldout, options) if options.heldout else ()
        self.cases: tuple[Case, ...] = (*self.seen, *self.heldout)
        self.limit = Limit(options.call_timeout_s, hidden_from_candidates(task))


def _helpful(work: Callable[..., object], *arguments: object) -> None:
    """Do what only saves time later: where it fails, the judge does it, and says what is wrong."""
    try:
        work(*arguments)
    except (ArenaError, CandidateFailed) as problem:
        logging.getLogger(__name__).warning("not compiled ahead of the judge: %s", problem)


def _build_hip(job: _Job, file: Path) -> CandidateFailed | None:
    """The judge's build, for every dtype that it will need, on the CPU platform at both wave sizes."""
    try:
        build_program(job.task, file, job.cases, job.facts)
        build_other_wave(job.task, file, job.cases, job.facts)
    except CandidateFailed as failure:
        return failure
    return None
