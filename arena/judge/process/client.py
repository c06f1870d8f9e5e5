"""A judge as the runner sees it: a process that is started once and asked many times. Imports no torch."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from arena.errors import InfrastructureError, JudgeUnavailable
from arena.extras import is_installed, require
from arena.judge.process import control
from arena.judge.process.messages import (
    BaselineChecked,
    CheckBaseline,
    Evaluate,
    EvaluationAnswer,
    Expect,
    FromJudge,
    HarnessFailed,
    Hello,
    Progress,
    ToJudge,
)
from arena.platforms import shares_by_socket
from arena.processes.process import how_it_ended, kill_group
from arena.processes.python_child import python_environment, python_module
from arena.processes.sandbox import network
from arena.processes.scratch import sweep
from arena.processes.wire import Channel, ChannelClosed, ChannelTimeout
from arena.results.environment import Environment
from arena.results.record import Evaluation
from arena.task.corpus.task_folder import load_task
from arena.task.options import Options

_START_S = 180.0
_SILENCE_S = 1800.0
_TRITON = ("triton", "ml_dtypes")
"""what Triton tasks need; on a GPU the first alone"""


class JudgeClient:
    """A judge process for one platform (`auto`: the best one here), on its first device or the one with this number.

    Its environment is that of the moment when this is made, also where a judge is started in place of a failed one.
    """

    module = "arena.judge.process.service"
    """what the process runs"""
    shares_machine = True
    """whether agents run on the same machine"""

    def __init__(self, platform: str, device: int | None = None) -> None:
        self._platform = platform
        self._device = device
        self._variables = python_environment()
        self._environment: Environment | None = None
        self._one_greets = threading.Lock()
        self._killed = False
        self._start()

    def _start(self) -> None:
        require("torch")
        ours, theirs = socket.socketpair()
        command = python_module(self.module, self._platform, str(theirs.fileno()))
        command += [] if self._device is None else [str(self._device)]
        self._process = subprocess.Popen(
            network.starting(command, shared=network.wanted(shares_by_socket(self._platform))),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=self._variables,
            start_new_session=True,
        )
        theirs.close()
        self._channel: Channel[ToJudge, FromJudge] = Channel(ours, FromJudge)
        self._greeted = False
        self._broken = False

    @property
    def pid(self) -> int:
        """The process id of the judge."""
        return self._process.pid

    @property
    def environment(self) -> Environment:
        """Device and versions; waits until the judge is warm."""
        with self._one_greets:
            if not self._greeted:
                self._environment, self._greeted = self._greeting().environment, True
        assert self._environment is not None
        return self._environment

    def _greeting(self) -> Hello:
        try:
            answer = self._receive(_START_S)
        except InfrastructureError as problem:
            raise JudgeUnavailable(f"the judge did not start: {problem}") from None
        if isinstance(answer, HarnessFailed):
            raise JudgeUnavailable(f"the judge did not start: {answer.detail}")
        if not isinstance(answer, Hello):
            raise JudgeUnavailable("the judge sent a message that nothing asked for")
        return answer

    def evaluate(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        heldout: Path | None = None,
        compiled: Path | None = None,
    ) -> Evaluation:
        """Evaluate a candidate file; raises `InfrastructureError` where no verdict can be given.

        `compiled`: the folder in which a builder has left its compiled kernels. A judge that fails is replaced, and
        where that fails too the baseline tells whose fault it is (`control.py`).
        """
        self._require_packages(task)
        return control.evaluated(self, control.Request(task, candidate, options, heldout, compiled), on_progress)

    def _require_packages(self, task: Path) -> None:
        """Raise `UsageError` where Triton or what its interpreter needs is missing: no candidate is to blame for it."""
        if all(map(is_installed, _TRITON)) or not load_task(task).task_type.triton:
            return
        require(*(_TRITON if self.environment.device.platform == "cpu" else _TRITON[:1]))

    def expect(self, task: Path, options: Options, heldout: Path | None, compiled: Path) -> None:
        """Have it start the workers of an evaluation that is asked for next. Returns at once, and nothing fails."""
        if self._killed or self._broken or not self._greeted:
            return
        with suppress(ChannelClosed, ChannelTimeout):
            self._channel.send(Expect(_message(task, None, options, heldout, compiled)))

    def evaluate_once(self, request: control.Request, on_progress: Callable[[Progress], None]) -> Evaluation:
        """Evaluate a candidate file; raises `InfrastructureError` where the judge failed with it.

        One that was killed has not failed, and is not asked again.
        """
        message = _message(request.task, request.candidate, request.options, request.heldout, request.compiled)
        try:
            answer = self._ask(message, on_progress)
        except InfrastructureError:
            if self._killed:
                raise JudgeUnavailable("the judge was closed") from None
            raise
        assert isinstance(answer, EvaluationAnswer)
        return answer.evaluation

    def check_baseline(self, task: Path, heldout: Path | None, options: Options) -> dict[str, str]:
        """Check the baseline on these held-out cases, or the task's own: by case id `passed`, or what is wrong."""
        self._require_packages(task)
        cases = str(heldout.resolve()) if heldout else ""
        answer = self._ask(CheckBaseline(str(task.resolve()), cases, options), lambda progress: None)
        assert isinstance(answer, BaselineChecked)
        return answer.cases

    def _ask(self, request: ToJudge, on_progress: Callable[[Progress], None]) -> FromJudge:
        """Ask; after any failure the next question goes to a new judge, since the old one's device may be poisoned."""
        if self._killed:
            raise JudgeUnavailable("the judge was closed")
        if self._broken or self._process.poll() is not None:  # which is not the fault of what is asked now
            self.close()
            sweep()  # what a judge that was killed has left, which may fill the disk
            self._start()
        self._broken = True
        answer = self._exchange(request, on_progress)
        self._broken = False
        return answer

    def _exchange(self, request: ToJudge, on_progress: Callable[[Progress], None]) -> FromJudge:
        _ = self.environment
        try:
            self._channel.send(request)
        except ChannelClosed:
            raise InfrastructureError("the judge has ended") from None
        while True:
            answer = self._receive(_SILENCE_S)
            if isinstance(answer, HarnessFailed):
                raise answer.error()
            if not isinstance(answer, Progress):
                return answer
            on_progress(answer)

    def close(self) -> None:
        """End the judge; it takes its workers with it, and what they wrote."""
        self._channel.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            kill_group(self._process.pid)
            self._process.wait()
            sweep()

    def kill(self) -> None:
        """End the judge for good, whatever it is doing: a thread that waits for its answer gets an error."""
        self._killed = True
        if self._process.poll() is None:
            kill_group(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, timeout_s: float) -> FromJudge:
        try:
            return self._channel.receive(timeout_s)[0]
        except ChannelTimeout:
            raise InfrastructureError(f"the judge said nothing for {timeout_s:.0f} s") from None
        except ChannelClosed:
            raise InfrastructureError(f"the judge {how_it_ended(self._process)}; see above") from None


def _message(
    task: Path, candidate: Path | None, options: Options, heldout: Path | None, compiled: Path | None
) -> Evaluate:
    """Return the request for an evaluation, with absolute paths, and "" for None."""
    task_, candidate_, heldout_, compiled_ = (
        str(path.resolve()) if path else "" for path in (task, candidate, heldout, compiled)
    )
    return Evaluate(task_, candidate_, options, heldout_, compiled_)
