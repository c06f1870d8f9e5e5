"""One trial's evaluation service: count and limit evaluations, remember the best kernel, decide which one counts."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from arena.agents.base import Attended, Feedback
from arena.errors import InfrastructureError
from arena.processes.scratch import scratch
from arena.results.record import Evaluation
from arena.results.session import KERNEL_LIMIT_BYTES, Evaluated, Limits
from arena.results.verdict import Status
from arena.runs.service.feedback import feedback, refusal
from arena.runs.service.judge_pool import JudgePool
from arena.runs.service.judge_queue import Owner
from arena.task.definition import Task
from arena.task.options import Options

_AGENT = Owner()


@dataclass(frozen=True)
class _EvaluatedKernel:
    number: int
    speedup: float
    text: bytes


class TrialService:
    """Implements `arena.agents.base.EvaluationService`. Thread-safe; one evaluation at a time."""

    def __init__(
        self,
        task: Task,
        options: Options,
        judge_pool: JudgePool,
        limits: Limits,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`clock`: seconds that evaluations are dated with, where no processes are attended."""
        self._task, self._judge_pool, self._limits = task, judge_pool, limits
        self._options = structs.replace(options, heldout=False)
        self._one_at_a_time = threading.Lock()
        self._attended: Attended | None = None
        self._own_clock = clock or (lambda: 0.0)
        self._known: dict[str, float | None] = {}
        """ranks of evaluated kernels by their digests: kernels are large, and most are no use any more"""
        self._best: _EvaluatedKernel | None = None
        self._used = 0

    def evaluate(self, kernel: bytes, profile: bool = False, owner: Owner = _AGENT) -> Feedback:
        """Evaluate a kernel on the seen cases; what the harness could not judge is not counted."""
        if len(kernel) > KERNEL_LIMIT_BYTES:
            return refusal(f"the kernel has {len(kernel)} bytes; at most {KERNEL_LIMIT_BYTES} are taken")
        with self._one_at_a_time:
            if self._used >= self._limits.evaluations:
                return refusal(
                    f"all {self._limits.evaluations} evaluations are used up; the best kernel so far is kept"
                )
            clock, started = self._clock(), time.monotonic()
            try:
                evaluation = self._judge(kernel, profile, owner)
            except InfrastructureError as problem:
                return refusal(f"no verdict, and not counted: {problem}")
            self._used += 1
            speedup = self._remember(kernel, evaluation, self._used)
            took = time.monotonic() - started
            evaluated = Evaluated(self._used, clock, took, evaluation.status, speedup, _digest(kernel))
            return feedback(evaluation, evaluated, self._limits.evaluations - self._used)

    def restore(self, kernel: bytes, evaluated: Evaluated) -> None:
        """Count and remember an evaluation that was made before a restart."""
        self._used = max(self._used, evaluated.number)
        self._rank(kernel, evaluated.number, evaluated.status, evaluated.speedup)

    @contextmanager
    def attend(self, processes: Attended) -> Iterator[None]:
        """Stop these processes whenever a judge measures, and time evaluations by their clock."""
        self._attended = processes
        try:
            with self._judge_pool.attend(processes):
                yield
        finally:
            self._attended = None

    def choose(self, left: bytes | None) -> tuple[bytes | None, str]:
        """The kernel that counts. Where there is a choice, one that was never evaluated is, outside of the budget."""
        best = self._best
        if left is None:
            if best is None:
                return None, f"no {self._task.task_type.kernel_file} was left, and none had passed an evaluation"
            return best.text, f"no {self._task.task_type.kernel_file} was left: evaluation {best.number} counts"
        if best is None or left == best.text:
            return left, ""
        if _digest(left) not in self._known:
            self._remember(left, self._judge(left, False), 0)
        speedup = self._known[_digest(left)]
        if speedup is not None and speedup >= best.speedup:
            return left, ""
        fault = "did not pass" if speedup is None else f"is slower ({speedup:.2f}x)"
        return best.text, f"what was left {fault}: evaluation {best.number} counts ({best.speedup:.2f}x)"

    def _judge(self, kernel: bytes, profile: bool, owner: Owner = _AGENT) -> Evaluation:
        options = structs.replace(self._options, profile=profile)
        with scratch("service") as place:
            file = Path(place) / self._task.task_type.kernel_file
            file.write_bytes(kernel)
            return self._judge_pool.evaluate(self._task, file, options, owner=owner)

    def _remember(self, kernel: bytes, evaluation: Evaluation, number: int) -> float | None:
        """Keep what a later choice needs: kernels that passed untimed are as fast as each other."""
        self._rank(kernel, number, evaluation.status, evaluation.seen_speedup)
        return evaluation.seen_speedup

    def _rank(self, kernel: bytes, number: int, status: Status, speedup: float | None) -> None:
        rank = speedup or (1.0 if status is Status.PASSED else None)
        self._known[_digest(kernel)] = rank
        if number and rank is not None and (self._best is None or rank > self._best.speedup):
            self._best = _EvaluatedKernel(number, rank, kernel)

    def _clock(self) -> float:
        return self._attended.active_s() if self._attended is not None else self._own_clock()


def _digest(kernel: bytes) -> str:
    return hashlib.sha256(kernel).hexdigest()
