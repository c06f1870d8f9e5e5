"""What is known of baselines: measured once, before any candidate exists, and remembered while the judge is warm."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from arena.judge.building import baseline_program
from arena.judge.correctness import CorrectnessCheck
from arena.judge.messages import Options
from arena.judge.performance import PerformanceCheck
from arena.judge.timed_program import TimedProgram
from arena.judge.verify import OutputCheck
from arena.judge.worker_program import WorkerProgram
from arena.judge.workers import ForkServers
from arena.model.record import Estimate
from arena.model.task import Arguments, Case, Task, TaskType, arguments
from arena.model.verdict import Status
from arena.protocol import Language
from arena.toolchains.hip_build import default_cache_root


@dataclass(frozen=True)
class BaselineResult:
    """A baseline on one case: is it right, how fast is it alone (ms), and roughly how long a call takes (s)."""

    finding: OutputCheck
    solo_ms: Estimate | None = None
    call_s: float = 0.0
    others_ms: dict[str, float] = field(default_factory=dict)
    """further, labelled baselines of torch2hip: PyTorch without a graph, and compiled"""


BaselineCache = dict[tuple[str, str, Options], BaselineResult]
"""Knowledge by task content, case and how thoroughly it was asked for.

By all options, so that a final evaluation measures anew what was measured while that trial's agent was alive.
"""


@dataclass
class Baselines:
    """The baseline of one task, with the worker it lives in."""

    task: Task
    cases: tuple[Case, ...]
    options: Options
    fork_servers: ForkServers
    right: CorrectnessCheck
    fast: PerformanceCheck
    book: BaselineCache

    @cached_property
    def subject(self) -> WorkerProgram:
        """The baseline's program; trusted, so its compiled kernels are kept from one evaluation to the next."""
        return self._subject(Language.TORCH)

    def warm(self) -> None:
        """Start its worker and have it wake the device, while there is something else to do."""
        self.subject.warm()

    def known(self, case: Case) -> BaselineResult:
        """What is known of the baseline on a case; measured now if it never was."""
        key = (self.task.content_hash, case.id, self.options)
        if key not in self.book:
            self.book[key] = self._measure(arguments(self.task, case))
        return self.book[key]

    def side(self) -> TimedProgram:
        """The baseline as one side of a comparison."""
        return TimedProgram(self.subject, self.right.platform, self.right.timeout_s)

    def close(self) -> None:
        """End its worker."""
        if "subject" in self.__dict__:
            self.subject.discard()

    def _subject(self, language: Language) -> WorkerProgram:
        program = baseline_program(self.task, self.cases, self.fast.timer.facts, language=language)
        return WorkerProgram(self.fork_servers, triton_cache(), (), self.right.timeout_s).adopt(program)

    def _measure(self, worked_out: Arguments) -> BaselineResult:
        finding = self.right.run(self.subject, worked_out)
        if finding.status is not Status.PASSED:
            return BaselineResult(finding)
        solo_ms, call_s = self._time(self.side(), worked_out)
        return BaselineResult(finding, solo_ms, call_s, self._others(worked_out))

    def _others(self, worked_out: Arguments) -> dict[str, float]:
        wanted = {
            "eager_stream": (self.options.eager_stream, Language.TORCH, False),
            "torch_compile": (self.options.torch_compile, Language.TORCH_COMPILE, True),
        }
        found: dict[str, float] = {}
        for label, (asked, language, graphs) in wanted.items():
            if asked and self.task.task_type is TaskType.TORCH2HIP:
                subject = self._subject(language)
                side = TimedProgram(subject, self.right.platform, self.right.timeout_s, graphs=graphs)
                found[label] = self._time(side, worked_out)[0].value
                subject.discard()
        return found

    def _time(self, side: TimedProgram, worked_out: Arguments) -> tuple[Estimate, float]:
        try:
            return self.fast.solo(side, worked_out)
        finally:
            side.unbind()


def triton_cache() -> Path:
    """Where what Triton compiles of the tasks' own kernels stays: they are trusted, and share what fits several.

    Triton finds things there by what they were made of.
    """
    return default_cache_root().parent / "triton"
