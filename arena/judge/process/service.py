"""The judge as a process, `python -m arena.judge.process.service PLATFORM FD [DEVICE]`: warm, one job at a time."""

from __future__ import annotations

import os
import platform as host_platform
import socket
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import gettempdir

from msgspec import structs

from arena.errors import InfrastructureError
from arena.judge.compile.cross_compile import CrossCompilation
from arena.judge.compile.stage import hip_compiler_version
from arena.judge.evaluate import CandidateEvaluation, JudgeContext, checks
from arena.judge.performance.baselines import Baselines
from arena.judge.performance.timer import Timer
from arena.judge.process.fitting import fit
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
from arena.judge.selection import bounded, select_cases, with_made_up_case
from arena.judge.workers.late_work import DELAYS, NAME, measure_late_work
from arena.judge.workers.sharing import SharingFailed, check_sharing
from arena.judge.workers.worker import CandidateFailed, ForkServers, WorkerFolder
from arena.platforms import here, shares_by_socket, show_only
from arena.platforms.base import Platform
from arena.processes.protocol import Prepare
from arena.processes.sandbox import compiling, network
from arena.processes.scratch import require_executable, scratch
from arena.processes.wire import Channel, ChannelClosed, ChannelTimeout
from arena.results.environment import Environment
from arena.results.messages import bare, message
from arena.results.record import Evaluation
from arena.results.verdict import Stage, Status
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task, arguments
from arena.version import own_versions

_GPU_JUDGE_THREADS = 2
_CALM_S = 5.0
_REACH_S = 60.0
_EXPECTED_S = 60.0
"""for which workers wait for their candidate: it may not have compiled, and then never comes"""
_LIBRARIES = ("torch", "triton", "numpy")


class JudgeService:
    """One device, the fork servers of its workers, and what is known of baselines."""

    def __init__(self, device: Platform) -> None:
        self._device = device
        self._fork_servers = ForkServers(device.name, spins=device.spins, interprets=device.name == "cpu")
        self._timer = Timer(device, device.facts())
        if not self._timer.facts.emulated:
            require_executable(Path(gettempdir()))
            _share_processor()
            _load_linear_algebra(device.torch_device)
        device.wait_until_idle(_CALM_S)  # while no candidate exists: with which later waits are compared
        self._timer.calibrate()
        self.context = JudgeContext(self._timer, self._fork_servers, CrossCompilation(), {})
        self._current: CandidateEvaluation | None = None
        self._expected: Evaluate | None = None
        self._late_work = ""
        self._isolation = self._tried_worker()

    def environment(self, isolation: str = "") -> Environment:
        """Device, versions and the sandbox of workers and compilers."""
        versions = {**_versions(), **self._device.versions(), **hip_compiler_version(self._timer.facts)}
        versions |= {NAME: self._late_work} if self._late_work else {}
        level = f"{isolation or self._isolation}; compilers {compiling.level()}"
        return Environment(self._timer.facts, level, versions)

    def _tried_worker(self) -> str:
        """Return the isolation level of workers, of one that must reach device and buffers; measure late work by it."""
        with scratch("worker") as home:
            worker = self._fork_servers.spawn(WorkerFolder(Path(home), Path(home)), ())
            try:
                worker.ask(Prepare(), _REACH_S)
                check_sharing(self._device, worker, _REACH_S)
                if self._device.graphs:
                    self._late_work = measure_late_work(self._device, worker, _REACH_S)
                    self._device.late_work_delays = self._late_work == DELAYS
            except CandidateFailed as failure:
                raise InfrastructureError(message("device_not_reached", problem=bare(failure.detail))) from None
            finally:
                worker.kill_worker()
            return worker.isolation

    def evaluate(self, request: Evaluate, channel: Channel[FromJudge, ToJudge]) -> Evaluation:
        """Evaluate one candidate."""

        def report(stage: Stage, done: int, total: int) -> None:
            channel.send(Progress(stage, done, total))

        current = self._current
        if current is None or structs.replace(request, candidate="") != self._expected or not current.has_started():
            current = self._begin(request)
        self._expected = None
        return current.run(Path(request.candidate), self.environment, report)

    def expect(self, request: Evaluate) -> None:
        """Have workers ready for a candidate that is still being compiled."""
        current = self._begin(request)
        self._expected = request
        current.start_workers()

    @property
    def patience_s(self) -> float | None:
        """For how long to wait for the next request before `tidy`; None where there is nothing to tidy."""
        return None if self._current is None else _EXPECTED_S

    def tidy(self) -> None:
        """End the workers of the last evaluation, or of one that was expected."""
        current, self._current, self._expected = self._current, None, None
        if current is not None:
            current.close()

    def _begin(self, request: Evaluate) -> CandidateEvaluation:
        self.tidy()
        task, options = supported(self._task(request)), bounded(request.options, self._timer.facts)
        compiled = Path(request.compiled) if request.compiled else None
        task = with_made_up_case(task, options)
        self._current = CandidateEvaluation(task, options, self.context, compiled)
        return self._current

    def check_baseline(self, request: CheckBaseline) -> dict[str, str]:
        """Check the baseline on the held-out cases that this platform can run."""
        task, options = supported(self._task(request)), bounded(request.options, self._timer.facts)
        cases = select_cases(task, task.heldout, options)
        correctness, performance = checks(task, options, self._timer)
        baselines = Baselines(task, cases, options, self._fork_servers, correctness, performance, {})
        try:
            found = {case.id: correctness.run(baselines.worker_program, arguments(task, case)) for case in cases}
        finally:
            baselines.close()
        return {name: f.status if f.status is Status.PASSED else f"{f.status}: {f.detail}" for name, f in found.items()}

    def answer(self, request: ToJudge, channel: Channel[FromJudge, ToJudge]) -> FromJudge:
        """Answer one request. Raises `ArenaError` where the harness fails with it."""
        if isinstance(request, CheckBaseline):
            return BaselineChecked(self.check_baseline(request))
        if isinstance(request, Evaluate):
            return EvaluationAnswer(fit(self.evaluate(request, channel)))
        raise InfrastructureError(f"this judge does not answer {type(request).__name__}")

    def _task(self, request: Evaluate | CheckBaseline) -> Task:
        heldout = Path(request.heldout) if request.heldout else None
        return load_task(Path(request.task), heldout).on(self._timer.facts.arch)

    def close(self) -> None:
        """End every worker, and what they are forked from."""
        self.tidy()
        self.context.cross_compilation.close()
        self._fork_servers.close()


def main(arguments: Sequence[str], kind: type[JudgeService] = JudgeService) -> None:
    """Serve until the runner closes the channel, which may be at any time.

    Args:
        arguments: platform, descriptor of the channel, and on a GPU machine the number of the device.
        kind: the judge to serve.
    """
    platform_name, descriptor, *device = arguments
    channel: Channel[FromJudge, ToJudge] = Channel(socket.socket(fileno=int(descriptor)), ToJudge)
    with suppress(ChannelClosed), closing(channel):
        try:
            _serve(channel, platform_name, int(device[0]) if device else None, kind)
        except ChannelClosed:
            raise
        except Exception as problem:  # the runner shows it; nothing is printed here
            channel.send(HarnessFailed.of(problem))


def _serve(
    channel: Channel[FromJudge, ToJudge], platform_name: str, device: int | None, kind: type[JudgeService]
) -> None:
    if device is not None:
        show_only(device)
    platform = here(platform_name)
    try:
        judge = kind(platform)
    except SharingFailed:
        _restart(platform)
        raise
    try:
        channel.send(Hello(judge.environment()))
        while True:
            _serve_one(judge, channel)
    finally:
        judge.close()


def _restart(platform: Platform) -> None:
    """Become a judge that shares buffers in another way, where there is one that was not tried."""
    environment = platform.restart_environment()
    if environment is None:
        return
    shared = network.wanted(shares_by_socket(platform.name, environment), environment)
    command = network.starting([sys.executable, *sys.orig_argv[1:]], shared=shared)
    os.execve(command[0], command, environment)


def _serve_one(judge: JudgeService, channel: Channel[FromJudge, ToJudge]) -> None:
    """Answer one request. Whoever asked need not wait until the workers have ended."""
    try:
        request, _ = channel.receive(judge.patience_s)
    except ChannelTimeout:
        judge.tidy()
        return
    if isinstance(request, Expect):
        if not channel.has_next():
            with suppress(Exception):  # whatever it is, the evaluation will say it
                judge.expect(request.evaluation)
        return
    if not isinstance(request, Evaluate):
        judge.tidy()
    channel.send(_answer(judge, request, channel))
    judge.tidy()


def _share_processor() -> None:
    """Few threads for the little that a GPU's judge computes on the CPU: more would spin beside other GPUs' judges."""
    import torch

    torch.set_num_threads(_GPU_JUDGE_THREADS)


def _load_linear_algebra(device: str) -> None:
    """PyTorch loads this library when it is first needed, and fails where two threads need it first."""
    import torch

    torch.linalg.inv(torch.eye(2, device=device))


def supported(task: Task) -> Task:
    """The task, or `InfrastructureError` where its kernels need a newer Triton than there is."""
    have = _versions().get("triton", "0.0")
    if task.least_triton and _release(have) < _release(task.least_triton):
        detail = message("triton_too_old", task=task.id, needed=task.least_triton, found=have)
        raise InfrastructureError(detail)
    return task


def _release(text: str) -> tuple[int, ...]:
    """(3, 6) of `3.6.0+git1234`."""
    return tuple(int(part) for part in text.split(".")[:2])


def _answer(judge: JudgeService, request: ToJudge, channel: Channel[FromJudge, ToJudge]) -> FromJudge:
    try:
        return judge.answer(request, channel)
    except ChannelClosed:
        raise
    except Exception as problem:
        return HarnessFailed.of(problem)


def _versions() -> dict[str, str]:
    found = {**own_versions(), "python": host_platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
