"""Stand-ins for judges and services, for tests that need no device."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from arena.agents.base import Attended, Feedback
from arena.errors import InfrastructureError
from arena.judge.process.messages import Progress
from arena.results.environment import DeviceFacts, Environment
from arena.results.record import CaseResult, CaseTiming, Estimate, Evaluation, Mode, Split
from arena.results.verdict import Stage, Status, Verdict
from arena.runs import runner
from arena.runs.config import RunConfig
from arena.task.corpus.task_folder import content_hash, load_task
from arena.task.options import Options

DEVICE = DeviceFacts(
    platform="cpu",
    vendor="cpu",
    arch="cpu",
    name="a processor",
    wave_size=32,
    memory_bytes=1 << 34,
    last_level_cache_bytes=0,
)
HERE = Environment(DEVICE, "session")


def planned(config: RunConfig, tasks: Path) -> runner.RunPlan:
    """Plan a run on the tasks of one folder."""
    return runner.plan_run(replace(config, corpora=(tasks,)))


@dataclass
class FakeEvaluator:
    """Judges by what a candidate says: `WRONG` in it is a wrong result. Fails as a harness where told to."""

    environment: Environment = HERE
    failing: set[str] = field(default_factory=set)
    seen: list[tuple[str, str, Path | None]] = field(default_factory=list)
    options: list[Options] = field(default_factory=list)
    interrupt_after: int | None = None
    shares_machine: bool = True

    def evaluate(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None],
        heldout: Path | None = None,
        compiled: Path | None = None,
    ) -> Evaluation:
        self.begin()
        if self.interrupt_after is not None and len(self.seen) >= self.interrupt_after:
            raise KeyboardInterrupt
        text = candidate.read_text(encoding="utf-8")
        self.seen.append((task.name, text, heldout))
        self.options.append(options)
        on_progress(Progress("correctness", 1, 1))
        if task.name in self.failing:
            raise InfrastructureError("the device fell over")
        status = Status.WRONG_RESULT if "WRONG" in text else Status.PASSED
        found = Evaluation(
            task=load_task(task).id,
            task_type="triton2triton",
            task_hash=content_hash(task, heldout),
            candidate_hash=hashlib.sha256(text.encode()).hexdigest(),
            environment=self.environment,
            verdicts=(Verdict(Stage.COMPILE, Status.PASSED), Verdict(Stage.CORRECTNESS, status, "so it is")),
            cases=(),
        )
        return self.finish(found, text)

    def expect(self, task: Path, options: Options, heldout: Path | None, compiled: Path) -> None:
        """There are no workers."""

    def check_baseline(self, task: Path, heldout: Path | None, options: Options) -> dict[str, str]:
        """Every baseline passes every case."""
        return {case.id: "passed" for case in load_task(task, heldout).heldout}

    def begin(self) -> None:
        """What comes before an evaluation; nothing, unless a kind of fake says otherwise."""

    def finish(self, found: Evaluation, text: str) -> Evaluation:
        """What becomes of an evaluation of this text; itself, unless a kind of fake says otherwise."""
        return found

    def kill(self) -> None:
        """Nothing is ever left in hand."""


@dataclass
class Timing(FakeEvaluator):
    """As fast as the last word of the kernel says, through the table `speeds`."""

    speeds: dict[str, float] = field(default_factory=dict)

    def finish(self, found: Evaluation, text: str) -> Evaluation:
        if found.status is not Status.PASSED:
            return found
        speed = self.speeds[text.split()[-1]]
        timing = CaseTiming(
            Estimate(speed, speed, speed), Estimate(1, 1, 1), Estimate(speed, speed, speed), Mode.LOOP, 1, 1, "", ()
        )
        case = CaseResult("c", Split.SEEN, "", "M=1", Status.PASSED, Status.PASSED, timing=timing)
        return replace(found, cases=(case,))


class FakeService:
    """Takes nothing and stops nobody."""

    def evaluate(self, kernel: bytes, profile: bool = False) -> Feedback:
        return Feedback("no", b"{}", None)

    def attend(self, processes: Attended) -> AbstractContextManager[None]:
        return nullcontext()

    def choose(self, left: bytes | None) -> tuple[bytes | None, str]:
        return left, ""
