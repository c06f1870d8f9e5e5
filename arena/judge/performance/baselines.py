"""Results of baselines: measured once, before any candidate exists, and remembered while the judge is warm."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from arena.judge.compile.stage import baseline_program
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.correctness.verify import OutputCheck
from arena.judge.performance.stage import PerformanceCheck
from arena.judge.performance.timed_program import TimedProgram
from arena.judge.selection import is_timed
from arena.judge.workers.program import WorkerProgram, triton_cache
from arena.judge.workers.worker import ForkServers
from arena.processes.protocol import Language
from arena.results.record import Estimate
from arena.results.verdict import Status
from arena.task.definition import Arguments, Case, Task, arguments
from arena.task.options import Options


@dataclass(frozen=True)
class BaselineResult:
    """A baseline on one case: is it right, how fast is it alone (ms), and roughly how long a call takes (s).

    Nothing of its speed is known where it is wrong, and where the case is for correctness alone.
    """

    finding: OutputCheck
    isolated_ms: Estimate | None = None
    call_s: float = 0.0
    others_ms: dict[str, float] = field(default_factory=dict)
    """further, labelled baselines where it is PyTorch: PyTorch without a graph, and compiled"""


BaselineCache = dict[tuple[str, str, Options], BaselineResult]
"""Knowledge by task content, case and how thoroughly it was asked for.

By all options, so that a final evaluation measures anew what was measured while that trial's agent was alive.
"""


@dataclass
class Baselines:
    """The baseline of one task, with the worker that it is timed in beside a candidate.

    What is not known yet is measured in another worker, which ends before a candidate is timed: so a baseline that is
    timed has the same history, whether it was known or not. What a process ran and when it started is felt by kernels
    that spill (docs/develop/measurement.md).
    """

    task: Task
    cases: tuple[Case, ...]
    options: Options
    fork_servers: ForkServers
    correctness: CorrectnessCheck
    performance: PerformanceCheck
    cache: BaselineCache
    _failed: BaselineCache = field(default_factory=dict)
    """results of this evaluation alone: the next one tries again, so that a hiccup does not last"""

    @cached_property
    def worker_program(self) -> WorkerProgram:
        """The baseline's program; trusted, so its compiled kernels are kept from one evaluation to the next."""
        return self._worker_program(Language.TORCH)

    @cached_property
    def _measured_in(self) -> WorkerProgram:
        """The baseline's program in a worker of its own, in which it is measured alone."""
        return self._worker_program(Language.TORCH)

    def warm(self) -> None:
        """Start its worker and have it wake the device, while there is something else to do."""
        self.worker_program.warm()

    def warm_for_measuring(self) -> None:
        """Start the worker in which what is not known yet is measured."""
        self._measured_in.warm()

    def end_measuring(self) -> None:
        """End the worker in which what was not known yet was measured, if there is one."""
        if "_measured_in" in self.__dict__:
            self._measured_in.discard()
            del self.__dict__["_measured_in"]

    def known(self, case: Case) -> BaselineResult:
        """Return what is known of the baseline on a case; measured now if it never was."""
        key = self._key(case)
        if not self.is_known(case):
            found = self._measure(case)
            kept = self.cache if found.finding.status is Status.PASSED else self._failed
            kept[key] = found
        return self.cache[key] if key in self.cache else self._failed[key]

    def is_known(self, case: Case) -> bool:
        """Return whether nothing of the baseline is left to measure on a case."""
        return self._key(case) in self.cache or self._key(case) in self._failed

    def _key(self, case: Case) -> tuple[str, str, Options]:
        return self.task.content_hash, case.id, self.options

    def side(self) -> TimedProgram:
        """The baseline as one side of a comparison."""
        return TimedProgram(self.worker_program, self.correctness.platform, self.correctness.timeout_s)

    def kill(self) -> None:
        """Kill its workers, and do not wait for their ends: `close` must follow."""
        for name in ("worker_program", "_measured_in"):
            if name in self.__dict__:
                self.__dict__[name].kill()

    def close(self) -> None:
        """End its workers."""
        self.end_measuring()
        if "worker_program" in self.__dict__:
            self.worker_program.discard()

    def _worker_program(self, language: Language) -> WorkerProgram:
        program = baseline_program(self.task, self.cases, self.performance.timer.facts, language=language)
        return WorkerProgram(self.fork_servers, triton_cache(), (), self.correctness.timeout_s).adopt(program)

    def _measure(self, case: Case) -> BaselineResult:
        worked_out = arguments(self.task, case)
        once = replace(self.correctness, enough_s=0.0)  # `arena tasks check` has tried all draws
        finding = once.run(self._measured_in, worked_out)
        if finding.status is not Status.PASSED or not self._is_timed(case):
            return BaselineResult(finding)
        side = TimedProgram(self._measured_in, self.correctness.platform, self.correctness.timeout_s)
        isolated_ms, call_s = self._time(side, worked_out)
        return BaselineResult(finding, isolated_ms, call_s, self._others(worked_out))

    def _is_timed(self, case: Case) -> bool:
        return is_timed(case, self.performance.timer.facts, self.options.effort)

    def _others(self, worked_out: Arguments) -> dict[str, float]:
        wanted = {
            "eager_stream": (self.options.eager_stream, Language.TORCH, False),
            "torch_compile": (self.options.torch_compile, Language.TORCH_COMPILE, True),
        }
        found: dict[str, float] = {}
        for label, (asked, language, graphs) in wanted.items():
            if asked and self.task.task_type.from_pytorch:
                worker_program = self._worker_program(language)
                side = TimedProgram(
                    worker_program, self.correctness.platform, self.correctness.timeout_s, graphs=graphs
                )
                found[label] = self._time(side, worked_out)[0].value
                worker_program.discard()
        return found

    def _time(self, side: TimedProgram, worked_out: Arguments) -> tuple[Estimate, float]:
        try:
            return self.performance.isolated(side, worked_out)
        finally:
            side.unbind()
