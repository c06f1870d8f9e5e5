"""One candidate through the gates: compile, correctness, performance, then the cases it never saw.

`CandidateEvaluation` is made, may start its workers while the candidate is still being compiled elsewhere, and runs
once. By then its workers are killed, and the answer can be sent; `close` waits until the device has let go of them.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from arena.errors import InfrastructureError
from arena.judge.compile import rules
from arena.judge.compile.cross_compile import CrossCompilation, Limit
from arena.judge.compile.extensions import ExtensionBuilder
from arena.judge.compile.signature import other_names
from arena.judge.compile.stage import COMPILER_S, build_program, hip_worker, run_compiler
from arena.judge.correctness.dump import CallDump
from arena.judge.correctness.launches import check_launches
from arena.judge.correctness.machine_code import executed
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.correctness.verify import OutputCheck
from arena.judge.correctness.wave_size import OTHER_WAVE, at_both_wave_sizes, build_other_wave
from arena.judge.performance.baselines import BaselineCache, Baselines
from arena.judge.performance.planning import told_by_check
from arena.judge.performance.profiling import profile_largest
from arena.judge.performance.stage import PerformanceCheck
from arena.judge.performance.timed_program import TimedProgram
from arena.judge.performance.timer import Timer
from arena.judge.process.messages import HELDOUT, SEEN
from arena.judge.selection import is_timed, not_run, select_cases
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import CandidateFailed, ForkServers
from arena.platforms.toolchains.same_program import same_program
from arena.processes.scratch import prefix as scratch_prefix
from arena.results.effort import Effort
from arena.results.environment import Environment
from arena.results.messages import bare, message, within
from arena.results.portability import TargetBuild
from arena.results.profile import Profile
from arena.results.record import CaseResult, CaseTiming, Evaluation
from arena.results.verdict import Stage, Status, Verdict
from arena.task.corpus.task_folder import hidden_from_candidates
from arena.task.definition import Case, Task, arguments
from arena.task.numerics.reference import Reference
from arena.task.options import Options

Report = Callable[[Stage, int, int], None]
_HOPELESS = (Status.TIMEOUT,)
_IDLE_WAIT_S = 20.0
_CANDIDATE, _BASELINE, _MEASURING = "candidate", "baseline", "measuring"


@dataclass(frozen=True)
class JudgeContext:
    """Parts of a judge that stay warm from one evaluation to the next."""

    timer: Timer
    fork_servers: ForkServers
    cross_compilation: CrossCompilation
    cache: BaselineCache


class CandidateEvaluation:
    """The evaluation of one candidate for one task."""

    def __init__(self, task: Task, options: Options, context: JudgeContext, compiled: Path | None = None) -> None:
        """`compiled`: what a builder compiles of the candidate, with a folder for each split (`ahead.py`).

        The folders are there already, though empty: what does not exist cannot be hidden.
        """
        self._task, self._options, self._context, self._compiled = task, options, context, compiled
        self._timer, self._fork_servers = context.timer, context.fork_servers
        self._hidden = hidden_from_candidates(task)
        self._seen = select_cases(task, task.seen, options)
        self._heldout = select_cases(task, task.heldout, options) if options.heldout else ()
        if not self._seen:
            limits = {"max_work": options.max_work, "max_held": options.max_held, "cases": list(options.case)}
            raise InfrastructureError(message("no_case_left", task=task.id, **limits))
        self._correctness, self._performance = checks(task, options, context.timer)
        self._results = {case.id: not_run(case) for case in (*self._seen, *self._heldout)}
        self._folder = Path(tempfile.mkdtemp(prefix=scratch_prefix("candidate")))
        self._file = self._folder / task.task_type.kernel_file
        self._dump = self._call_dump()
        self._calls_s: dict[str, float | None] = {}
        """what a call of the candidate took, by case; None where it was wrong"""
        cases = (*self._seen, *self._heldout)
        asked = structs.replace(options, profile=False, dump=None)  # which make no difference to a baseline
        self._baselines = Baselines(
            task, cases, asked, context.fork_servers, self._correctness, self._performance, context.cache
        )
        self._candidate: WorkerProgram | None = None
        self._other_wave: WorkerProgram | None = None
        self._starter = ThreadPoolExecutor(max_workers=1)
        self._starting: dict[str, Future[None]] = {}
        self._unchanged = False
        self._log = ""
        self._build_s = 0.0
        self._targets: tuple[TargetBuild, ...] = ()

    def _call_dump(self) -> CallDump | None:
        """What writes the first call that fails; of a case that is named, one that passes too."""
        if self._options.dump is None:
            return None
        named = [*self._options.case, *(self._results if self._options.like else ())]
        return CallDump(Path(self._options.dump), self._file, self._timer.facts, named[-1] if named else "")

    def start_workers(self) -> None:
        """Start those that are missing, in the background, and have them wake the device, which takes a while.

        One after the other: two at once would hold each other up. While something of the baseline is to be measured,
        those that are timed beside each other are left for later, and start in the same order as where it is known.
        """
        if not all(self._baselines.is_known(case) for case in self._seen):
            if _MEASURING not in self._starting and self._times:
                self._starting[_MEASURING] = self._starter.submit(self._baselines.warm_for_measuring)
            return
        if self._candidate is None:
            self._candidate = self._worker_program()
            self._starting[_CANDIDATE] = self._starter.submit(self._candidate.warm)
        if _BASELINE not in self._starting and self._times:
            self._starting[_BASELINE] = self._starter.submit(self._baselines.warm)

    def run(self, candidate: Path, environment: Callable[[str], Environment], report: Report) -> Evaluation:
        """Pass the gates in order and stop at the first that fails. A profile is no gate and comes last.

        After `start_workers`, ask `has_started` first: nothing may start while something is measured.
        """
        verdicts: list[Verdict] = []
        try:
            shutil.copyfile(candidate, self._file)
            self._await_device()
            self._timer.make_room(arguments(self._task, case) for case in self._timed(self._seen + self._heldout))
            for stage, gate in self._gates():
                started = time.monotonic()
                finding = gate(report)
                verdicts.append(Verdict(stage, finding.status, finding.detail, time.monotonic() - started))
                if finding.status is not Status.PASSED:
                    break
            if verdicts[-1].stage is Stage.CORRECTNESS and not verdicts[-1].passed:
                self._warn_of_names()
            profile = self._profile() if self._options.profile else None
            isolation = self._candidate.isolation if self._candidate else ""
        finally:
            self._kill()
        return Evaluation(
            task=self._task.id,
            task_type=self._task.task_type,
            task_hash=self._task.content_hash,
            candidate_hash=self._hash,
            environment=environment(isolation),
            verdicts=tuple(verdicts),
            cases=tuple(self._results.values()),
            compile_log=self._log,
            seconds={**{v.stage.value: v.seconds for v in verdicts}, "build": self._build_s},
            targets=self._targets,
            profile=profile,
            effort=self._options.effort,
            unchanged=self._unchanged,
            dumped=self._dump.case if self._dump else "",
            made_up=self._options.like or "",
        )

    def _gates(self) -> list[tuple[Stage, Callable[[Report], OutputCheck]]]:
        """The gates in order, without those that the options leave out."""
        gates: list[tuple[Stage, Callable[[Report], OutputCheck], object]] = [
            (Stage.COMPILE, self._compile, True),
            (Stage.CORRECTNESS, self._check_correctness, True),
            (Stage.PERFORMANCE, self._check_performance, self._times),
            (Stage.HELDOUT, self._generalization, self._heldout),
        ]
        return [(stage, gate) for stage, gate, wanted in gates if wanted]

    @property
    def _times(self) -> bool:
        """Return whether anything is timed."""
        return self._options.effort is not Effort.CORRECTNESS

    def _await_device(self) -> None:
        """Wait until the device is idle: work that an agent's processes began may still be running."""
        if not self._timer.platform.wait_until_idle(_IDLE_WAIT_S):
            raise InfrastructureError(message("device_busy", allowed_s=_IDLE_WAIT_S))

    def _profile(self) -> Profile:
        """In a fresh worker, after everything that is timed: a profiler slows down the process that it is in."""
        passed = [case for case in self._seen if self._results[case.id].candidate is Status.PASSED]
        worked_out = [arguments(self._task, case) for case in passed]
        timings = {name: result.timing for name, result in self._results.items()}
        baseline = self._baselines.worker_program
        return profile_largest(self._correctness, self._candidate, worked_out, self._targets, baseline, timings)

    def _compile(self, report: Report) -> OutputCheck:
        """Build for every dtype that will be needed, load, and have Triton compile for the smallest seen case."""
        report(Stage.COMPILE, 0, 1)
        self._hash = hashlib.sha256(self._file.read_bytes()).hexdigest()
        self._measure_baseline(self._seen)
        self._cross(report)
        self.start_workers()
        cases = (*self._seen, *self._heldout)
        try:
            rules.check(self._task, self._file)
            baseline = self._task.baseline_kernel
            self._unchanged = baseline is not None and same_program(self._file, baseline)
            build = build_program(self._task, self._file, cases, self._timer.facts)
            program = self._complete(build.program, self._seen)
            other = build_other_wave(self._task, self._file, cases, self._timer.facts)
        except CandidateFailed as failure:
            return OutputCheck(failure.status, failure.detail)
        finally:
            self._await_start(_CANDIDATE)
        self._log, self._build_s = build.log, build.seconds
        self._of_candidate.adopt(program)
        if other is not None:
            self._other_wave = self._worker_program().adopt(other.program)
        smallest = min(self._seen, key=lambda case: arguments(self._task, case).num_bytes)
        try:
            self._of_candidate.ready(smallest)
        except CandidateFailed as failure:
            return OutputCheck(failure.status, failure.detail)
        first = self._correctness.first_call(self._of_candidate, arguments(self._task, smallest))
        return first if first.status in (Status.COMPILE_ERROR, Status.LOAD_ERROR) else OutputCheck(Status.PASSED)

    def _complete(self, program: Program, cases: tuple[Case, ...]) -> Program:
        """Return a program with the extensions that it asks for on cases of one split."""
        builder = ExtensionBuilder(self._context.cross_compilation, run_compiler, COMPILER_S)
        limit = Limit(self._options.call_timeout_s, self._hidden)
        return builder.complete(program, cases, self._timer.facts, limit)

    def _warn_of_names(self) -> None:
        """Put into the log of a candidate that is wrong that its parameters have other names than the task's."""
        text = self._file.read_text(encoding="utf-8", errors="replace")
        self._log = "\n".join(filter(None, (other_names(self._task, text, self._file.name), self._log)))

    def _worker_program(self, split: str = SEEN) -> WorkerProgram:
        """A place for the candidate to run in, with what was compiled for this split, and out of sight of the other."""
        options, hip = self._options, not self._task.task_type.triton
        native_worker = hip_worker(self._timer.facts.arch) if hip else None
        most_bytes, cache, hidden = options.host_memory_bytes, None, self._hidden
        if self._compiled is not None:
            cache = self._compiled / split
            hidden += tuple(self._compiled / other for other in (SEEN, HELDOUT) if other != split)
        limits, modules = (options.call_timeout_s, most_bytes), self._task.takes_modules
        return WorkerProgram(self._fork_servers, cache, hidden, *limits, native_worker, modules=modules)

    def _cross(self, report: Report) -> None:
        """Build for the GPUs asked for. All cases count: none is run, but for one small one where that is asked for."""
        cases = (*self._task.seen, *(self._task.heldout if self._options.heldout else ()))
        limit = Limit(self._options.call_timeout_s, self._hidden)

        def show(done: int, total: int) -> None:
            report(Stage.COMPILE, done, total)

        wanted, cross = self._options.targets, self._context.cross_compilation
        self._targets = cross.build(self._task, self._file, cases, wanted, limit, show)
        if self._options.execute:
            self._targets = executed(cross.fork_servers, self._task, self._file, self._targets, limit)

    def _check_correctness(self, report: Report) -> OutputCheck:
        finding = self._over_cases(Stage.CORRECTNESS, self._seen, self._check, report)
        return self._with_launches(finding, self._task.seen)

    def _check_performance(self, report: Report) -> OutputCheck:
        self._await_start(_BASELINE)
        return self._over_cases(Stage.PERFORMANCE, self._timed(self._seen), self._time, report)

    def _timed(self, cases: tuple[Case, ...]) -> tuple[Case, ...]:
        return tuple(case for case in cases if is_timed(case, self._timer.facts, self._options.effort))

    def _await_start(self, whose: str) -> None:
        """Wait for a worker. Raises `InfrastructureError` where it did not start: it knows no candidate yet."""
        if whose not in self._starting:
            return
        try:
            self._starting[whose].result()
        except CandidateFailed as failure:
            raise InfrastructureError(message("process_did_not_start", problem=bare(failure.detail))) from None

    def has_started(self) -> bool:
        """Wait for the workers that were started in advance; False where one could not be."""
        return not any(one.exception() for one in self._starting.values())

    def _generalization(self, report: Report) -> OutputCheck:
        """Held-out cases: the baseline first, with no candidate alive; then the candidate, in a fresh worker."""
        for worker_program in (self._of_candidate, self._other_wave):
            if worker_program is not None:
                worker_program.close()
        program = self._of_candidate.program
        with suppress(CandidateFailed):  # the cases that lack one say so
            program = self._complete(program, self._heldout)
        if self._compiled is not None:
            self._of_candidate.discard()
            self._candidate = self._worker_program(HELDOUT)
        self._of_candidate.adopt(program)
        self._measure_baseline(self._heldout)
        finding = self._over_cases(Stage.HELDOUT, self._heldout, self._check_and_time, report)
        return self._with_launches(finding, self._task.heldout)

    def _measure_baseline(self, cases: tuple[Case, ...]) -> None:
        """Measure what is not known of the baseline, in a worker that has ended when anything else begins."""
        self._await_start(_MEASURING)
        for case in cases:
            self._baselines.known(case)
        self._baselines.end_measuring()

    def _with_launches(self, finding: OutputCheck, cases: tuple[Case, ...]) -> OutputCheck:
        """Check, where all is right in an emulation, also the launches of cases that it leaves out as too large."""
        if finding.status is not Status.PASSED or not self._timer.facts.emulated or self._options.case:
            return finding
        left_out = [case for case in cases if case.id not in self._results]
        found = check_launches(self._timer.platform, self._of_candidate, self._correctness.reference, left_out)
        if found is None:
            return finding
        case, wrong = found
        launched = replace(not_run(case), baseline=Status.PASSED, candidate=wrong.status, detail=wrong.detail)
        self._results[case.id] = launched  # whose outcome is by cases
        return _in_case(case, wrong)

    def _over_cases(
        self, stage: Stage, cases: tuple[Case, ...], judge: Callable[[Case], OutputCheck], report: Report
    ) -> OutputCheck:
        """Judge every case, so that each has its own status; the first that fails is the stage's."""
        first = OutputCheck(Status.PASSED)
        for done, case in enumerate(cases):
            report(stage, done, len(cases))
            finding = judge(case)
            if first.status is Status.PASSED and finding.status is not Status.PASSED:
                first = _in_case(case, finding)
            if finding.status in _HOPELESS and self._baselines.known(case).finding.status is Status.PASSED:
                break
        return first

    def _check(self, case: Case) -> OutputCheck:
        worked_out = arguments(self._task, case)
        checks = replace(self._correctness, dump=self._dump)
        draws = checks.draws(worked_out)
        finding = checks.run(self._of_candidate, worked_out, draws)
        self._calls_s[case.id] = finding.call_s
        if self._other_wave is not None:
            with self._dump.at_wave_size(OTHER_WAVE) if self._dump else nullcontext():
                finding = at_both_wave_sizes(finding, checks.run(self._other_wave, worked_out, draws))
        self._results[case.id] = self._result(case, finding)
        return finding

    def _time(self, case: Case) -> OutputCheck:
        """Time a case that was right, where the speed of the baseline is known to compare with."""
        known = self._baselines.known(case)
        if known.isolated_ms is None:
            return OutputCheck(Status.PASSED)
        platform, timeout_s = self._timer.platform, self._options.call_timeout_s
        graphs, call_s = self._options.graphs, told_by_check(self._calls_s.get(case.id))
        candidate = TimedProgram(self._of_candidate, platform, timeout_s, graphs=graphs, call_s=call_s)
        finding, timing = self._performance.compare(
            self._baselines.side(), candidate, arguments(self._task, case), (known.isolated_ms, known.call_s)
        )
        if timing is not None:
            timing = replace(timing, other_baselines_ms=known.others_ms)
        error_ratio = self._results[case.id].error_ratio
        judged = OutputCheck(finding.status, finding.detail, error_ratio)
        self._results[case.id] = self._result(case, judged, timing)
        return finding

    def _check_and_time(self, case: Case) -> OutputCheck:
        finding = self._check(case)
        return finding if finding.status is not Status.PASSED else self._time(case)

    def _result(self, case: Case, finding: OutputCheck, timing: CaseTiming | None = None) -> CaseResult:
        return CaseResult(
            case=case.id,
            split=case.split,
            kind=case.kind,
            label=case.label,
            baseline=self._baselines.known(case).finding.status,
            candidate=finding.status,
            detail=finding.detail,
            error_ratio=finding.error_ratio,
            timing=timing,
            calls=case.calls,
            gpu_share=case.gpu_share,
            regime=case.regime,
        )

    @property
    def _of_candidate(self) -> WorkerProgram:
        assert self._candidate is not None
        return self._candidate

    def _kill(self) -> None:
        """Kill all workers, and do not wait for their ends: a device takes its time for each."""
        self._starter.shutdown(cancel_futures=True)
        for worker_program in self._of_either_wave:
            worker_program.kill()
        self._baselines.kill()

    def close(self) -> None:
        """End all workers, and delete what they wrote."""
        self._kill()
        self._baselines.close()
        for worker_program in self._of_either_wave:
            worker_program.discard()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _of_either_wave(self) -> list[WorkerProgram]:
        return [one for one in (self._candidate, self._other_wave) if one is not None]


def _in_case(case: Case, finding: OutputCheck) -> OutputCheck:
    return OutputCheck(finding.status, within("in_case", finding.detail, case=case.label))


def checks(task: Task, options: Options, timer: Timer) -> tuple[CorrectnessCheck, PerformanceCheck]:
    """Return the checks of correctness and of performance, for single cases of a task."""
    reference = Reference(task.reference_path)
    correctness = CorrectnessCheck(timer.platform, reference, options.seeds, options.call_timeout_s)
    return correctness, PerformanceCheck(timer, reference, options.timing_budget_s, options.effort)
