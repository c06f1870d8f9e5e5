"""Workers as the judge sees them: forked on demand, commanded, stopped while others run, killed when done."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

import msgspec

from arena.errors import InfrastructureError
from arena.judge.workers import hip_messages as flat
from arena.judge.workers.answers import Overstep, bounded
from arena.judge.workers.environment import clean_environment
from arena.platforms.toolchains.base import NativeWorker
from arena.processes.flags import Flags, new_flags
from arena.processes.printable import printable, shortened
from arena.processes.process import kill_group
from arena.processes.protocol import (
    ANSWER_BYTES,
    Blame,
    Done,
    Ended,
    Extension,
    ExtensionWanted,
    Failed,
    FromForkServer,
    FromWorker,
    Kernels,
    Pass,
    Profiled,
    ProfileRequest,
    Ready,
    Reap,
    Release,
    ReportKernels,
    Spawn,
    Spawned,
    ToForkServer,
    ToWorker,
)
from arena.processes.python_child import python_module
from arena.processes.wire import Channel, ChannelClosed, ChannelTimeout, Malformed
from arena.results.messages import MESSAGES, code_of, message
from arena.results.portability import KernelUse
from arena.results.profile import KernelTime
from arena.results.verdict import Status

_ANSWER_S = 1.0
"""for the rest of an answer that has begun to come"""
_START_S = 120.0
_LOG_TAIL_BYTES = 4096
MOST_EXTENSIONS = 8
"""of one module: each takes a compiler about a minute"""
DETAIL_CHARACTERS = 8000
"""of what is said about a candidate that failed: a compiler's words, a traceback, the end of its log"""
_BLAMED = {
    Blame.COMPILE_ERROR: (Status.COMPILE_ERROR, "triton_refused"),
    Blame.LOAD_ERROR: (Status.LOAD_ERROR, "load_failed"),
    Blame.LAUNCH_ERROR: (Status.LAUNCH_ERROR, "launch_failed"),
    Blame.GRID_LIMIT: (Status.LAUNCH_ERROR, "launch_failed"),
    Blame.REFUSED: (Status.LAUNCH_ERROR, "kernel_refuses"),
    Blame.WRONG_RESULT: (Status.WRONG_RESULT, "returns_other_tensors"),
    Blame.OUT_OF_MEMORY: (Status.OUT_OF_MEMORY, "device_memory_full"),
    Blame.NOT_CAPTURABLE: (Status.LAUNCH_ERROR, "launch_failed"),
    Blame.RULE_VIOLATION: (Status.RULE_VIOLATION, "rule_broken"),
    Blame.NOT_MODELLED: (Status.NOT_RUN, "instruction_unknown"),
    Blame.MACHINE_FAULT: (Status.WRONG_RESULT, "machine_code_fault"),
}
"""status and message of each failure that a worker reports"""


class CandidateFailed(Exception):
    """Carries a candidate's failure to the stage that turns it into a verdict; never leaves the judge.

    The detail may quote a candidate, its compiler or its log: it is made printable and cut here.
    """

    def __init__(self, status: Status, detail: str, blame: Blame | None = None) -> None:
        """`blame`: what the worker reported, where that is how it is known."""
        detail = shortened(detail, DETAIL_CHARACTERS)
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail
        self.blame = blame


class LacksExtension(CandidateFailed):
    """A module asks for an extension that it was not given: whoever can build it does, and starts another worker."""

    def __init__(self, extension: Extension) -> None:
        named = {"name": printable(extension.name), "most": MOST_EXTENSIONS}
        super().__init__(Status.COMPILE_ERROR, message("extension_not_built", **named))
        self.extension = extension


@dataclass(frozen=True)
class WorkerFolder:
    """The folders of one worker: its home, and where its compiled Triton kernels go."""

    home: Path
    cache: Path
    program: Path | None = None
    """holds the files that it is to load; it may read them and nothing around them"""
    native_worker: NativeWorker | None = None
    """the program for HIP candidates, where that is what it becomes"""
    modules: bool = False
    """whether it may construct modules"""


class ForkServers:
    """The processes that workers are forked from. In workers of one that `interprets`, Triton kernels run on the CPU.

    HIP workers leave Python at once, and come from a process without PyTorch, which takes half the time to fork.
    """

    def __init__(self, platform: str, *, spins: bool, interprets: bool) -> None:
        self._full = ForkServer(platform, spins=spins, interprets=interprets)
        self._bare = ForkServer("", spins=spins, interprets=False)

    def spawn(self, folder: WorkerFolder, hide: Sequence[Path]) -> Worker:
        """Fork a worker; returns when it is in its sandbox and waits for commands."""
        return (self._bare if folder.native_worker else self._full).spawn(folder, hide)

    def close(self) -> None:
        """End both processes."""
        self._full.close()
        self._bare.close()


class ForkServer:
    """One process that workers are forked from; with no platform it imports nothing for them."""

    def __init__(self, platform: str, *, spins: bool, interprets: bool) -> None:
        ours, theirs = socket.socketpair()
        self._spins = spins
        self._process = subprocess.Popen(
            python_module("arena.worker.fork_server", platform, str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            env=clean_environment(interprets=interprets),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._channel: Channel[ToForkServer, FromForkServer] = Channel(ours, FromForkServer)
        self._one_at_a_time = threading.Lock()

    def spawn(self, folder: WorkerFolder, hide: Sequence[Path]) -> Worker:
        """Fork a worker; returns when it is in its sandbox and waits for commands."""
        flags, *files = new_flags() if self._spins else (None,)
        ours, theirs = socket.socketpair()
        log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        native_worker = folder.native_worker
        shown = [str(folder.program)] if folder.program else []
        shown += [str(path) for path in native_worker.folders] if native_worker else []
        program = str(native_worker.program) if native_worker else ""
        preload = str(native_worker.runtime or "") if native_worker else ""
        request = Spawn(
            str(folder.home), str(folder.cache), tuple(map(str, hide)), tuple(shown), program, preload, folder.modules
        )
        try:
            with self._one_at_a_time:
                self._channel.send(request, [theirs.fileno(), log.fileno(), *files])
                answer, _ = self._channel.receive(_START_S)
        except (ChannelClosed, ChannelTimeout) as problem:
            raise InfrastructureError(message("processes_cannot_start", problem=_lost(problem))) from None
        finally:
            theirs.close()
            for file in files:
                os.close(file)
        assert isinstance(answer, Spawned)
        encode = flat.encode if native_worker else msgspec.json.encode
        channel: Channel[ToWorker, FromWorker] = Channel(ours, FromWorker, encode=encode, most_bytes=ANSWER_BYTES)
        return Worker(self, answer.pid, channel, log, flags)

    def ended(self, pid: int) -> int | None:
        """Exit code of a worker, negative for a signal; None where it still runs."""
        try:
            with self._one_at_a_time:
                self._channel.send(Reap(pid))
                answer, _ = self._channel.receive(10.0)
        except (ChannelClosed, ChannelTimeout):
            return None
        return answer.code if isinstance(answer, Ended) else None

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        kill_group(self._process.pid)
        self._process.wait()


class Worker:
    """One forked worker. Every way of not answering as asked is a `CandidateFailed`."""

    def __init__(
        self,
        fork_server: ForkServer,
        pid: int,
        channel: Channel[ToWorker, FromWorker],
        log: IO[bytes],
        flags: Flags | None = None,
    ) -> None:
        """`flags`: by which its passes are timed, where judge and worker poll; else it is by messages."""
        self._fork_server, self._pid, self._channel, self._log = fork_server, pid, channel, log
        self._flags = flags
        self._ran_s: tuple[float, float] | None = None
        self.ready_s = 0.0
        """how long after it was told of the last pass it was ready for it: the new data are there by then"""
        self.over_s = 0.0
        """when what was timed last was over, by `time.perf_counter`"""
        self._stopped = self._halted = False
        self._collected = False
        self.isolation = self._welcome()

    def _welcome(self) -> str:
        try:
            answer, _ = self._channel.receive(_START_S)
        except (ChannelClosed, ChannelTimeout) as problem:
            reason = self._exit_reason()
            self._log.close()
            why = f"{_lost(problem)}: {reason}"
            raise InfrastructureError(message("process_did_not_start", problem=why)) from None
        if not isinstance(answer, Ready):
            raise InfrastructureError(message("process_did_not_start", problem="it did not name its sandbox"))
        return answer.isolation

    def ask(self, command: ToWorker, timeout_s: float, files: Sequence[int] = ()) -> Done:
        """Command, and wait. Raises `CandidateFailed` for a failure, an early end or silence."""
        answer = self._exchange(command, timeout_s, files)
        return answer if isinstance(answer, Done) else self._unexpected_answer()

    def kernels(self, timeout_s: float) -> tuple[KernelUse, ...]:
        """Return what it says it compiled for its target. Raises as `ask` does."""
        answer = self._exchange(ReportKernels(), timeout_s)
        return answer.kernels if isinstance(answer, Kernels) else self._unexpected_answer()

    def profile(self, index: int, timeout_s: float) -> tuple[KernelTime, ...]:
        """Return what it says ran during one call on this set. Raises as `ask` does."""
        answer = self._exchange(ProfileRequest(index), timeout_s)
        return answer.kernels if isinstance(answer, Profiled) else self._unexpected_answer()

    def _unexpected_answer(self) -> NoReturn:
        self._overstepped("an answer to another command, or an answer too many")

    def _overstepped(self, how: object) -> NoReturn:
        """An honest worker cannot send this: the candidate has its hands on the channel."""
        self.kill()
        raise CandidateFailed(Status.CRASH, message("answer_invalid", problem=how))

    def _exchange(
        self, command: ToWorker, timeout_s: float, files: Sequence[int] = (), *, timed: bool = False
    ) -> FromWorker:
        self.resume()
        self._ran_s = None
        try:
            self._channel.send(command, files)
            answer = bounded(self._answered(command, timeout_s, timed=timed))
        except ChannelTimeout:
            self.kill()
            raise CandidateFailed(Status.TIMEOUT, message("no_answer", allowed_s=timeout_s)) from None
        except (Malformed, Overstep) as problem:
            self._overstepped(problem)
        except ChannelClosed:
            raise CandidateFailed(Status.CRASH, self._exit_reason()) from None
        if self._channel.holds_more:
            self._unexpected_answer()
        if isinstance(answer, Failed):
            status, detail = _failure(answer)
            raise CandidateFailed(status, detail, answer.blame)
        if isinstance(answer, ExtensionWanted):
            raise LacksExtension(answer.extension)
        return answer

    def _answered(self, command: ToWorker, timeout_s: float, *, timed: bool) -> FromWorker:
        """Return what it says; of a pass that flags time, what it has stored, unless it sends that it failed."""
        flags = self._flags
        if flags is None or not isinstance(command, Pass):
            return self._channel.receive(timeout_s, spins=timed and flags is not None)[0]
        self._ran_s = flags.time_pass(timeout_s, self._channel.has_next)
        if self._ran_s is not None:
            return Done(flags.worker_s)
        if not self._channel.has_next():
            raise ChannelTimeout
        return self._channel.receive(_ANSWER_S)[0]

    def timed(self, command: ToWorker, timeout_s: float) -> tuple[float, Done]:
        """`ask` without sleeping, and the seconds on the judge's clock: of a pass that flags time, from `go` to `done`.

        Otherwise from when the worker is woken to when the answer has come.
        """
        started = time.perf_counter()
        answer = self._exchange(command, timeout_s, timed=True)
        done = answer if isinstance(answer, Done) else self._unexpected_answer()
        self.ready_s, self.over_s = 0.0, self._channel.arrived_s
        if self._flags is not None and isinstance(command, Pass):
            if self._ran_s is None:
                self._overstepped("an answer to a pass of which it has not said that it is ready and done")
            woken_s, (started, self.over_s) = started, self._ran_s
            self.ready_s = started - woken_s
        return self.over_s - started, done

    def stop(self) -> None:
        """Freeze every thread of the worker; its device work is drained, since it has answered."""
        if not self._stopped:
            self._signal(signal.SIGSTOP)
            self._stopped = True

    def halt(self) -> None:
        """Stop every thread at once by a signal: a control group takes its time, in which a device finishes work.

        Nothing may have come: an answer that nobody asked for would be taken for that to the next command.
        """
        if not self._halted:
            self._signal(signal.SIGSTOP)
            self._halted = True
        if self._channel.has_next():
            self._overstepped("an answer to a pass that was over, which has none; or it has ended")

    def resume(self) -> None:
        """Let it run again."""
        if self._stopped or self._halted:
            self._signal(signal.SIGCONT)
            self._stopped = self._halted = False

    def release(self, timeout_s: float) -> None:
        """Have it unmap the shared buffer, so that the judge may free it."""
        self.ask(Release(), timeout_s)

    def kill(self) -> None:
        """End it and everything it started in its session."""
        if not self._collected:
            kill_group(self._pid)
        self._channel.close()

    def log(self) -> str:
        """The end of what it printed: for a person to read, never to judge by."""
        file = self._log.fileno()
        size = os.fstat(file).st_size
        tail = os.pread(file, _LOG_TAIL_BYTES, max(0, size - _LOG_TAIL_BYTES))
        return printable(tail.decode("utf-8", "replace")).strip()

    def _exit_reason(self) -> str:
        code = self._fork_server.ended(self._pid)
        self.kill()
        self._collected = code is not None  # from here on its number may be another's
        log = self.log()
        printed = f"; it printed: {log}" if log else ""
        if code is None:
            return message("connection_closed", printed=printed)
        if code < 0:
            return message("ended_by_signal", signal=signal_name(-code), printed=printed)
        return message("exited", code=code, printed=printed)

    def _signal(self, number: signal.Signals) -> None:
        if self._collected:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._pid, number)

    def kill_worker(self) -> None:
        """Kill it, and have the fork server collect what is left."""
        self.kill()
        if not self._collected:
            self._fork_server.ended(self._pid)
        self._log.close()


def _failure(answer: Failed) -> tuple[Status, str]:
    """Return the status and the detail of a failure that a worker reports.

    A detail that ends in a code of the status is kept: the worker's own code wrote it. Another text is a traceback or
    an error of a runtime, and becomes the value of a message.
    """
    status, code = _BLAMED[answer.blame]
    detail = answer.detail.strip()
    known = MESSAGES.get(code_of(detail))
    return status, detail if known is not None and status in known.statuses else message(code, log=detail)


def _lost(problem: ChannelClosed | ChannelTimeout) -> str:
    """Return what became of a process that should have answered."""
    return f"no answer within {_START_S:.0f} s" if isinstance(problem, ChannelTimeout) else "its connection is closed"


def signal_name(number: int) -> str:
    """`SIGSEGV`; real-time signals between the first and the last have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
