"""A builder as the runner sees it: a process without a device that says what does not compile. Imports no torch."""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path

from arena.errors import InfrastructureError
from arena.extras import require
from arena.judge.process.messages import Compile, Compiled, FromBuilder, HarnessFailed
from arena.processes.process import how_it_ended, kill_group
from arena.processes.python_child import python_environment, python_module
from arena.processes.wire import Channel, ChannelClosed, ChannelTimeout
from arena.results.environment import Environment
from arena.results.record import Evaluation
from arena.task.options import Options

_SILENCE_S = 1800.0
_END_S = 5.0
_NO_DEVICE = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), "-1")


class BuilderClient:
    """A builder process. Thread-safe: compilations run side by side, as many as there are cores.

    Its environment is that of the moment when this is made, also where one is started in place of a failed one.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._former: list[subprocess.Popen[bytes]] = []
        self._killed = False
        self._variables = {**python_environment(), **_NO_DEVICE}
        self._start()

    def _start(self) -> None:
        require("torch")
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            python_module("arena.judge.compile.builder_service", str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=self._variables,
            start_new_session=True,
        )
        theirs.close()
        self._channel: Channel[Compile, Compiled] = Channel(ours, Compiled)

    @property
    def pid(self) -> int:
        """The process id of the builder."""
        return self._process.pid

    def compile(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        environment: Environment,
        heldout: Path | None = None,
        into: Path | None = None,
    ) -> Evaluation | None:
        """The evaluation of a candidate that does not compile for the environment's device; None where it does.

        Compiled Triton kernels are left below `into`, for `JudgeClient.evaluate`. Raises `InfrastructureError` where
        nothing can be said; the next question then goes to a new builder.
        """
        cases, folder = (str(path.resolve()) if path else "" for path in (heldout, into))
        request = Compile(str(task.resolve()), str(candidate.resolve()), options, environment, cases, folder)
        ours, theirs = socket.socketpair()
        answers: Channel[Compile, FromBuilder] = Channel(ours, FromBuilder)
        try:
            asked = self._send(request, theirs)
            answer = self._receive(answers, asked)
        finally:
            answers.close()
        if isinstance(answer, HarnessFailed):
            self._replace(asked)
            raise answer.error()
        return answer.refused

    def _send(self, request: Compile, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Hand over a request with the socket for its answer; returns the process that has it."""
        with self._one_at_a_time, theirs:
            if self._killed:
                raise InfrastructureError("the builder was closed")
            if self._process.poll() is not None:
                self._renew()
            try:
                self._channel.send(request, [theirs.fileno()])
            except (ChannelClosed, ChannelTimeout) as problem:
                raise InfrastructureError(f"the builder takes no requests ({problem!r})") from None
            return self._process

    def _receive(self, answers: Channel[Compile, FromBuilder], asked: subprocess.Popen[bytes]) -> FromBuilder:
        try:
            return answers.receive(_SILENCE_S)[0]
        except ChannelTimeout:
            kill_group(asked.pid)
            raise InfrastructureError(f"the builder said nothing for {_SILENCE_S:.0f} s") from None
        except ChannelClosed:
            raise InfrastructureError(f"the builder {how_it_ended(asked)}; see above") from None

    def _replace(self, failed: subprocess.Popen[bytes]) -> None:
        """After a failure: let the old builder finish what others asked of it, and ask a new one from now on."""
        with self._one_at_a_time:
            if failed is self._process and not self._killed:
                self._renew()

    def _renew(self) -> None:
        self._channel.close()
        self._former.append(self._process)
        self._start()

    def close(self) -> None:
        """End the builder; it takes its workers with it."""
        with self._one_at_a_time:
            self._killed = True
            self._channel.close()
            for process in (*self._former, self._process):
                _end(process)

    def kill(self) -> None:
        """End the builder at once, whatever it is doing: a thread that waits for its answer gets an error."""
        with self._one_at_a_time:
            self._killed = True
            for process in (*self._former, self._process):
                if process.poll() is None:
                    kill_group(process.pid)

    def __enter__(self) -> BuilderClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.wait()
