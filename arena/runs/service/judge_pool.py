"""Evaluators shared by trials that run side by side, which take turns (`judge_queue.py`).

While an evaluator on the agents' machine measures, agents stand still. An evaluator on another machine can be lost:
what it was asked then goes to another one.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import structs

from arena.agents.base import Attended
from arena.errors import InfrastructureError, JudgeLost
from arena.judge.process.client import JudgeClient
from arena.judge.process.messages import HELDOUT, SEEN, Progress
from arena.processes.scratch import prefix, remove
from arena.results.environment import Environment
from arena.results.record import Evaluation
from arena.runs.service.judge_queue import JudgeQueue, Owner, QueuedRequest
from arena.task.definition import Task
from arena.task.options import Options

_GIVEN_UP = "the run was given up"
QUEUED_A_GPU = 3
"""requests for each GPU at once: one is measured, while others are compiled or wait"""
STALLED_S = 6 * 3600.0
"""after so long in which no judge was given back, whoever waits for one gets an error"""
_MOST_MOVES = 2
"""to other judges, of one evaluation whose judge was lost"""

_LOOKS_EVERY_S = 0.5
"""how often a request that waits asks whether its owner is gone"""
_NOBODY = Owner()

T = TypeVar("T")


class Evaluator(Protocol):
    """Whoever judges candidates: a judge process here, or one on another machine."""

    @property
    def environment(self) -> Environment:
        """Return the environment that it measures in."""

    @property
    def shares_machine(self) -> bool:
        """Return whether agents run on the machine where it measures."""

    def evaluate(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None],
        heldout: Path | None = None,
        compiled: Path | None = None,
    ) -> Evaluation:
        """Evaluate a candidate file; `compiled` is the folder in which a builder here left what it compiled of it.

        Raises:
            JudgeLost: this judge is gone, and another may be asked.
            InfrastructureError: no verdict can be given.
        """

    def expect(self, task: Path, options: Options, heldout: Path | None, compiled: Path) -> None:
        """Get ready for a candidate that a builder here compiles into this folder; nothing fails by it."""

    def check_baseline(self, task: Path, heldout: Path | None, options: Options) -> dict[str, str]:
        """Check the baseline on these held-out cases: by case id `passed`, or what is wrong."""

    def kill(self) -> None:
        """Stop at once, whatever is being evaluated."""


class KernelBuilder(Protocol):
    """Whoever compiles candidates without a device."""

    def compile(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        environment: Environment,
        heldout: Path | None = None,
        into: Path | None = None,
    ) -> Evaluation | None:
        """The evaluation of a candidate that does not compile; None where it does, with kernels left below `into`."""

    def kill(self) -> None:
        """Stop at once."""


class JudgePool:
    """Thread-safe. `builder`: sees to it that only what compiles takes a turn; without one, everything does.

    `replace` returns a judge in place of one that was lost, or raises `InfrastructureError`; it may take minutes.
    Without it, a lost judge is one judge less. `queued`: how many requests a judge is given at once, where it compiles
    one while it measures another.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator],
        builder: KernelBuilder | None = None,
        replace: Callable[[Evaluator], Evaluator] | None = None,
        *,
        queued: int = 1,
        stalled_s: float = STALLED_S,
    ) -> None:
        self._evaluators = list(evaluators)
        self._queue = JudgeQueue(self._evaluators, queued)
        self._told: list[Evaluator] = []
        self._builder = builder
        self._replace = replace
        self._stalled_s = stalled_s
        self._given_back = 0
        self._lock = threading.Lock()
        self._present: list[Attended] = []
        self._measuring = 0
        self._expected = len(self._evaluators)
        self._over = ""
        self._closed = False

    @property
    def environment(self) -> Environment:
        """Return the environment that kernels are measured in."""
        return self._evaluators[0].environment

    @property
    def environments(self) -> tuple[Environment, ...]:
        """One for each judge."""
        return tuple(evaluator.environment for evaluator in self._evaluators)

    def evaluate(
        self,
        task: Task,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        heldout: Path | None = None,
        owner: Owner = _NOBODY,
    ) -> Evaluation:
        """Compile without a device where there is a builder, wait for a turn, and evaluate."""
        baseline = _baseline(task, options)
        if self._builder is None:
            return self._asked(
                lambda one: one.evaluate(task.path, candidate, options, on_progress, heldout), baseline, owner=owner
            )
        compiled = Path(tempfile.mkdtemp(prefix=prefix("kernels")))
        for split in (SEEN, HELDOUT):
            (compiled / split).mkdir()
        told = self._tell(task, options, heldout, compiled)
        try:
            refused = self._refused(self._builder, task, candidate, options, heldout, compiled)
            if refused is not None:
                return refused
            return self._asked(
                lambda one: one.evaluate(task.path, candidate, options, on_progress, heldout, compiled),
                baseline,
                told,
                owner,
            )
        finally:
            self._forget(told)
            remove(compiled)

    def check_baseline(self, task: Task, heldout: Path | None, options: Options) -> dict[str, str]:
        """Wait for a turn, and check a task's baseline on its held-out cases, or on these."""
        return self._asked(lambda one: one.check_baseline(task.path, heldout, options))

    def _tell(self, task: Task, options: Options, heldout: Path | None, compiled: Path) -> Evaluator | None:
        """Tell a judge that has nothing to do, and expects nothing, what comes: it gets ready meanwhile."""
        with self._lock:
            idle = None if self._over else self._queue.take_idle(_baseline(task, options), self._told)
            if idle is None:
                return None
            self._told.append(idle)
        try:
            idle.expect(task.path, options, heldout, compiled)
        except Exception:
            logging.getLogger(__name__).exception("a judge could not be told of %s", task.id)
        finally:
            self._give_back(idle)
        return idle

    def _forget(self, told: Evaluator | None) -> None:
        with self._lock:
            self._told = [one for one in self._told if one is not told]

    def _asked(
        self,
        ask: Callable[[Evaluator], T],
        baseline: Hashable | None = None,
        told: Evaluator | None = None,
        owner: Owner = _NOBODY,
    ) -> T:
        """Wait for a turn and ask; where the judge is lost meanwhile, ask another one, at most twice."""
        for _ in range(_MOST_MOVES):
            try:
                return self._asked_once(ask, baseline, told, owner)
            except JudgeLost as problem:
                if not self._closed:
                    logging.getLogger(__name__).warning("a judge is lost, another one is asked: %s", problem)
        return self._asked_once(ask, baseline, None, owner)

    def _asked_once(
        self, ask: Callable[[Evaluator], T], baseline: Hashable | None, told: Evaluator | None, owner: Owner
    ) -> T:
        with self._turn(baseline, told, owner) as evaluator, self._silence(evaluator):
            return ask(evaluator)

    def _refused(
        self,
        builder: KernelBuilder,
        task: Task,
        candidate: Path,
        options: Options,
        heldout: Path | None,
        into: Path,
    ) -> Evaluation | None:
        """Return the evaluation that a builder refuses it with. Where the builder fails, the judge builds it."""
        environment = self.environment
        try:
            return builder.compile(task.path, candidate, options, environment, heldout, into)
        except InfrastructureError as problem:
            if self._closed:
                raise InfrastructureError(_GIVEN_UP) from None
            logging.getLogger(__name__).warning("the builder failed, the judge compiles %s: %s", candidate, problem)
            return None

    @contextmanager
    def attend(self, processes: Attended) -> Iterator[None]:
        """While this lasts, these processes are stopped whenever something is measured."""
        with self._lock:
            self._present.append(processes)
            if self._measuring:
                processes.pause()
        try:
            yield
        finally:
            with self._lock:
                self._present.remove(processes)
        if self._closed:
            raise InfrastructureError(_GIVEN_UP)

    def cancel(self) -> None:
        """End agents and evaluations at once; whoever waits gets an `InfrastructureError`."""
        with self._lock:
            self._closed = True
            present, evaluators = tuple(self._present), tuple(self._evaluators)
        self._end(_GIVEN_UP)
        for processes in present:
            processes.kill()
        for evaluator in evaluators:
            evaluator.kill()
        if self._builder is not None:
            self._builder.kill()

    @contextmanager
    def _turn(self, baseline: Hashable | None, told: Evaluator | None, owner: Owner) -> Iterator[Evaluator]:
        request: QueuedRequest[Evaluator] = QueuedRequest(baseline, owner.name)
        with self._lock:
            if self._over:
                raise InfrastructureError(self._over)
            self._queue.take(request, told)
        if request.judge is None:
            self._wait(request, owner)
        if request.judge is None:
            raise InfrastructureError(self._over)
        try:
            yield request.judge
        except JudgeLost as problem:
            with self._lock:
                is_first = self._queue.lose(request.judge)
            if is_first:
                threading.Thread(target=self._replace_lost, args=(request.judge, problem), daemon=True).start()
            raise
        except BaseException:
            self._give_back(request.judge)
            raise
        self._give_back(request.judge, baseline)

    def _wait(self, request: QueuedRequest[Evaluator], owner: Owner) -> None:
        """Wait for a turn. Raises `InfrastructureError` where its owner is gone, or no judge is given back any more."""
        before, since = self._given_back, time.monotonic()
        while not request.called.wait(min(_LOOKS_EVERY_S, self._stalled_s)):
            with self._lock:
                if request.called.is_set():
                    return
                if self._given_back != before:
                    before, since = self._given_back, time.monotonic()
                is_gone, waited_s = owner.is_gone(), time.monotonic() - since
                if not is_gone and waited_s < self._stalled_s:
                    continue
                waiting = len(self._queue)
                self._queue.leave(request)
            if is_gone:
                raise InfrastructureError("the request was given up while it waited for a judge")
            raise InfrastructureError(
                f"waited for a judge: none of {len(self._evaluators)} came back in {waited_s:.0f} s, "
                f"and {waiting} requests wait; stop the run, and the same command goes on"
            )

    def _give_back(self, evaluator: Evaluator, baseline: Hashable | None = None) -> None:
        with self._lock:
            self._given_back += 1
            self._queue.give_back(evaluator, baseline)

    def _replace_lost(self, lost: Evaluator, problem: InfrastructureError) -> None:
        """Look for a judge in place of one that was lost; where none is left, whoever waits gets an error."""
        try:
            lost.kill()
        except Exception:
            logging.getLogger(__name__).exception("a lost judge could not be killed")
        try:
            if self._replace is None or self._closed:
                raise problem
            fresh = self._replace(lost)
        except Exception as raised:  # nobody else sees it: without an answer, whoever waits would wait for good
            reason = str(raised) if isinstance(raised, InfrastructureError) else f"{type(raised).__name__}: {raised}"
            with self._lock:
                self._expected -= 1
                none_left = not self._expected
            if not self._closed:
                logging.getLogger(__name__).warning("a lost judge was not replaced: %s", reason)
            if none_left:
                self._end(f"no judge is left: {reason}")
            return
        with self._lock:
            self._evaluators.append(fresh)
            self._given_back += 1
            over = self._over
            if not over:
                self._queue.add(fresh)
        if over:
            fresh.kill()

    def _end(self, why: str) -> None:
        """Whoever waits for a turn, now or later, gets an `InfrastructureError`."""
        with self._lock:
            self._over = self._over or why
            self._queue.end()

    @contextmanager
    def _silence(self, evaluator: Evaluator) -> Iterator[None]:
        """Every agent on the evaluator's machine stands still while this lasts, also those that begin meanwhile."""
        if not evaluator.shares_machine:
            yield
            return
        with self._lock:
            self._measuring += 1
            if self._measuring == 1:
                for processes in self._present:
                    processes.pause()
        try:
            yield
        finally:
            with self._lock:
                self._measuring -= 1
                if self._measuring == 0:
                    for processes in self._present:
                        processes.resume()


def _baseline(task: Task, options: Options) -> Hashable:
    """Return what a judge knows a baseline by (`arena.judge.evaluate`), whether or not the candidate is profiled.

    Held-out cases that a caller gives in place of the task's own make no difference: the guess may be wrong for them.
    """
    return task.content_hash, structs.replace(options, profile=False)


@contextmanager
def started(
    platform: str, devices: Sequence[int | None] = (None,), *, builds: bool | None = False
) -> Iterator[JudgePool]:
    """Start a judge for each device, and stop them at the end; kill them when interrupted.

    Args:
        platform: `cpu`, `cuda`, `rocm` or `auto`.
        devices: numbers of GPUs; None is the first, or the CPU.
        builds: whether candidates are also compiled without a device, as sessions of agents want; None: on GPUs.
    """
    from arena.judge.compile.builder_client import BuilderClient

    with ExitStack() as judges:
        evaluators = [judges.enter_context(JudgeClient(platform, device)) for device in devices]
        if builds is None:
            builds = not evaluators[0].environment.device.emulated
        pool = JudgePool(evaluators, judges.enter_context(BuilderClient()) if builds else None)
        try:
            yield pool
        except KeyboardInterrupt:
            pool.cancel()
            raise
