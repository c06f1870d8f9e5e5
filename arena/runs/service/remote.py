"""Judges on other machines: one request as bytes, one answer as bytes, whatever carries them.

`RemoteEvaluator` stands on the runner's machine, `RemoteJudge` beside the judge. A request names a task by its id and
content hash and carries the kernel; each side has the task's files itself. Messages are JSON that is decoded strictly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from arena.errors import FileError, InfrastructureError, JudgeLost, JudgeUnavailable
from arena.judge.compile import rules
from arena.judge.compile.refusals import refusal
from arena.judge.process.messages import BaselineChecked, EvaluationAnswer, HarnessFailed, Progress
from arena.judge.selection import bounded, select_cases
from arena.judge.workers.worker import DETAIL_CHARACTERS, CandidateFailed
from arena.processes.printable import shortened
from arena.processes.sandbox.namespaces import OWN_NETWORK, parts_of
from arena.processes.scratch import scratch
from arena.processes.wire import MAX_FRAME_BYTES
from arena.results.environment import Environment
from arena.results.record import Evaluation
from arena.results.session import KERNEL_LIMIT_BYTES
from arena.results.verdict import Stage, Verdict
from arena.runs.service.judge_pool import Evaluator, JudgePool, KernelBuilder
from arena.task.corpus.corpora import Corpora
from arena.task.corpus.task_folder import HELDOUT, load_task
from arena.task.definition import Task
from arena.task.options import Options
from arena.version import RELEASE, code_hash

_OF_ANOTHER_KIND = "an answer of another kind than was asked for; install the same version on every machine"
_HASH_CHARACTERS = 16
"""of a content hash, in a message that names two of them"""
_FEW = 3
_NEEDED = (OWN_NETWORK, "mount")
"""parts of the sandbox: the services of a cluster listen in its network and at sockets in files"""


class RemoteMessage(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of the messages between a runner and a judge on another machine."""


class Join(RemoteMessage, frozen=True):
    """Asked first: whether a judge may work for this runner, which has this code and these tasks (id, content hash)."""

    version: str
    code: str
    tasks: dict[str, str]


class Joined(RemoteMessage, frozen=True):
    """The judge has the same code and tasks, and measures in this environment, on this machine."""

    environment: Environment
    machine: str


class EvaluateKernel(RemoteMessage, frozen=True):
    """Evaluate one kernel. `heldout`: the text of a file of held-out cases in place of the task's own."""

    task: str
    task_hash: str
    kernel: bytes
    options: Options
    heldout: bytes | None = None


class CheckBaselineThere(RemoteMessage, frozen=True):
    """Check the task's baseline on its held-out cases, or on these."""

    task: str
    task_hash: str
    options: Options
    heldout: bytes | None = None


class Unfit(RemoteMessage, frozen=True):
    """This judge can answer nothing of the kind, and says why; another may."""

    reason: str


ToRemote = Join | EvaluateKernel | CheckBaselineThere
FromRemote = Joined | Progress | EvaluationAnswer | BaselineChecked | HarnessFailed | Unfit
Answer = TypeVar("Answer", Joined, EvaluationAnswer, BaselineChecked)
_requests: msgspec.json.Decoder[ToRemote] = msgspec.json.Decoder(ToRemote)
_answers: msgspec.json.Decoder[FromRemote] = msgspec.json.Decoder(FromRemote)


class Transport(Protocol):
    """Carries bytes to one judge on another machine."""

    @property
    def where(self) -> str:
        """The machine, for messages."""

    def ask(self, request: bytes, on_progress: Callable[[bytes], None]) -> bytes:
        """Return the answer; raises `JudgeLost` where the judge is gone."""

    def kill(self) -> None:
        """Stop the judge at once, whatever it is doing."""


class RemoteEvaluator:
    """A judge on another machine, as the runner sees it. A node of its cluster may be the runner's own: `machine`."""

    def __init__(self, transport: Transport, environment: Environment, machine: str = "") -> None:
        self._transport, self._environment = transport, environment
        self._machine = machine

    @property
    def where(self) -> str:
        """The machine, for messages."""
        return self._transport.where

    @property
    def environment(self) -> Environment:
        """The device, versions and isolation there."""
        return self._environment

    @property
    def shares_machine(self) -> bool:
        """Return whether agents run on the machine where it measures."""
        return self._machine == this_machine()

    def evaluate(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None],
        heldout: Path | None = None,
        compiled: Path | None = None,
    ) -> Evaluation:
        """Evaluate a candidate file; raises `JudgeLost` where another judge may be asked instead.

        What was `compiled` here stays here: the machine there compiles for itself.
        """
        loaded = _loaded(task, heldout)
        if candidate.stat().st_size > KERNEL_LIMIT_BYTES:
            return _too_large(loaded, candidate, options, self._environment)
        kernel = candidate.read_bytes()
        request = EvaluateKernel(loaded.id, loaded.content_hash, kernel, options, _text(heldout))
        found = asked(self._transport, request, EvaluationAnswer, on_progress).evaluation
        expected = (loaded.id, loaded.content_hash, hashlib.sha256(kernel).hexdigest())
        if (found.task, found.task_hash, found.candidate_hash) != expected:
            raise JudgeLost(f"the judge on {self._transport.where} evaluated another kernel or task than {loaded.id}")
        return found

    def expect(self, task: Path, options: Options, heldout: Path | None, compiled: Path) -> None:
        """Do nothing: where the machine there compiles, it has its judge expect what comes of it."""

    def check_baseline(self, task: Path, heldout: Path | None, options: Options) -> dict[str, str]:
        """Check the baseline on these held-out cases: by case id `passed`, or what is wrong."""
        loaded = _loaded(task, heldout)
        request = CheckBaselineThere(loaded.id, loaded.content_hash, options, _text(heldout))
        return asked(self._transport, request, BaselineChecked).cases

    def kill(self) -> None:
        """Stop at once, whatever is being evaluated."""
        self._transport.kill()


def joined(transport: Transport, tasks: Mapping[str, str]) -> RemoteEvaluator:
    """Return a judge that may work here.

    Args:
        transport: carries bytes to it.
        tasks: content hash by id, of the tasks that it will be asked about.

    Raises:
        JudgeLost: it is gone, or unfit; the message says why.
        InfrastructureError: it does not start.
    """
    answer = asked(transport, Join(RELEASE, code_hash(), dict(tasks)), Joined)
    return RemoteEvaluator(transport, answer.environment, answer.machine)


def asked(
    transport: Transport,
    request: ToRemote,
    expected: type[Answer],
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Answer:
    """Ask a judge, and return its answer of the expected kind.

    Raises:
        JudgeLost: it is gone, unfit, or says what is no such answer; the message names its machine.
        InfrastructureError: the harness failed with the request.
    """

    def progressed(data: bytes) -> None:
        step = _decoded(data)
        if not isinstance(step, Progress):
            raise JudgeLost(_OF_ANOTHER_KIND)
        on_progress(step)

    try:
        answer = _decoded(transport.ask(msgspec.json.encode(request), progressed))
        if isinstance(answer, Unfit):
            raise JudgeLost(answer.reason)
        if isinstance(answer, HarnessFailed):
            raise answer.error()
        if not isinstance(answer, expected):
            raise JudgeLost(_OF_ANOTHER_KIND)
        return answer
    except JudgeLost as problem:
        raise JudgeLost(f"the judge on {transport.where}: {problem}") from None


def _decoded(data: bytes) -> FromRemote:
    if len(data) > MAX_FRAME_BYTES:
        raise JudgeLost(f"an answer of {len(data)} bytes, at most {MAX_FRAME_BYTES} are taken")
    try:
        return _answers.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise JudgeLost(f"an answer that cannot be read: {problem}") from None


class RemoteJudge:
    """The judge's side: finds the tasks in its own corpora, and refuses what differs from the runner's.

    Thread-safe. With a `builder` it compiles one kernel while another is measured.
    """

    def __init__(self, judge: Evaluator, corpora: Corpora, builder: KernelBuilder | None = None) -> None:
        self._judges, self.corpora = JudgePool([judge], builder), corpora

    def answer(self, request: bytes, on_progress: Callable[[bytes], None]) -> bytes:
        """Answer one request; never raises, since an exception would have to be pickled."""
        try:
            reply = self._answer(_requests.decode(request), on_progress)
        except (JudgeLost, JudgeUnavailable, msgspec.MsgspecError) as problem:
            reply = Unfit(shortened(str(problem), DETAIL_CHARACTERS))
        except Exception as problem:
            reply = HarnessFailed.of(problem)
        return msgspec.json.encode(reply)

    def _answer(self, request: ToRemote, on_progress: Callable[[bytes], None]) -> FromRemote:
        if isinstance(request, Join):
            return self._join(request)
        with scratch("remote") as place:
            heldout = None if request.heldout is None else Path(place, HELDOUT)
            if heldout is not None:
                heldout.write_bytes(request.heldout or b"")
            task = self._same_task(request.task, request.task_hash, heldout)
            if isinstance(request, CheckBaselineThere):
                return BaselineChecked(self._judges.check_baseline(task, heldout, request.options))
            if len(request.kernel) > KERNEL_LIMIT_BYTES:
                raise InfrastructureError(
                    f"the kernel has {len(request.kernel)} bytes, of at most {KERNEL_LIMIT_BYTES}"
                )
            candidate = Path(place, task.task_type.kernel_file)
            candidate.write_bytes(request.kernel)
            found = self._judges.evaluate(
                task, candidate, request.options, lambda step: on_progress(msgspec.json.encode(step)), heldout
            )
            return EvaluationAnswer(found)

    def _join(self, request: Join) -> Joined:
        """Raises `JudgeLost` where a verdict from here could differ from one of the runner's machine."""
        if (request.version, request.code) != (RELEASE, code_hash()):
            raise JudgeLost(
                f"arena differs: {_named(RELEASE, code_hash())} there, "
                f"{_named(request.version, request.code)} here; install the same on every machine"
            )
        for name, wanted in request.tasks.items():
            self._same_task(name, wanted)
        environment = self._judges.environment
        if lacking := lacks(environment.isolation):
            raise JudgeLost(
                f"its sandbox lacks {lacking} (isolation {environment.isolation}); see docs/develop/isolation.md"
            )
        return Joined(environment, this_machine())

    def _same_task(self, name: str, wanted: str, heldout: Path | None = None) -> Task:
        if name not in self.corpora.folders:
            raise JudgeLost(f"{name} is not in its corpus; name its folders there with ARENA_TASKS_DIR")
        task = self.corpora.load(name, heldout)
        if task.content_hash != wanted:
            raise JudgeLost(
                f"{name} differs: content hash {task.content_hash[:_HASH_CHARACTERS]} there, "
                f"{wanted[:_HASH_CHARACTERS]} here; copy the same corpus to every machine"
            )
        return task


def this_machine() -> str:
    """Return a name that all processes have in common which a running kernel schedules, containers among them."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def lacks(isolation: str) -> str:
    """Return what a level such as `session+network; compilers none` lacks of what keeps candidates from a cluster."""
    parts = parts_of(isolation)
    return " and ".join(part for part in _NEEDED if part not in parts)


def difference(one: Environment, other: Environment) -> str:
    """Say why results of two judges may not stand in one run; empty where they may."""
    if not one.comparable_with(other):
        return f"device {other.device.name} instead of {one.device.name}"
    versions = [
        f"{name} {other.versions.get(name, 'missing')} instead of {one.versions.get(name, 'missing')}"
        for name in sorted({*one.versions, *other.versions})
        if one.versions.get(name) != other.versions.get(name)
    ]
    return ", ".join(versions[:_FEW])


def _named(version: str, code: str) -> str:
    return f"{version} (code {code[:_HASH_CHARACTERS]})"


def _loaded(task: Path, heldout: Path | None) -> Task:
    """Load a task on the runner's side; one that has become malformed is a fault of the harness, as a judge says it."""
    try:
        return load_task(task, heldout)
    except FileError as problem:
        raise InfrastructureError(str(problem)) from None


def _text(heldout: Path | None) -> bytes | None:
    return None if heldout is None else heldout.read_bytes()


def _too_large(task: Task, candidate: Path, options: Options, environment: Environment) -> Evaluation:
    """Return the verdict on a file that is not sent, since no kernel may be so large."""
    options = bounded(options, environment.device)
    heldout = select_cases(task, task.heldout, options) if options.heldout else ()
    cases = (*select_cases(task, task.seen, options), *heldout)
    try:
        rules.check(task, candidate)
    except CandidateFailed as failure:
        return refusal(task, candidate, cases, environment, Verdict(Stage.COMPILE, failure.status, failure.detail, 0.0))
    raise InfrastructureError(f"{candidate} has changed while it was read")
