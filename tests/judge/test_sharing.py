"""The round trip through a shared buffer at a judge's start, and the judge that starts again where it fails."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from arena.judge.process import service
from arena.judge.process.messages import FromJudge, HarnessFailed, Hello, ToJudge
from arena.judge.workers.sharing import SharingFailed, check_sharing
from arena.judge.workers.worker import ForkServer, Worker, WorkerFolder
from arena.platforms.base import SharedBuffer
from arena.platforms.cpu.platform import CpuPlatform
from arena.platforms.rocm.platform import IPC_MODE, RocmPlatform
from arena.processes.python_child import python_environment
from arena.processes.wire import Channel
from tests.platforms.fake_device import MI300X, FakeDevice


class Elsewhere(CpuPlatform):
    """Hands workers another memory than the judge's own."""

    def allocate(self, num_bytes: int, *, lasting: bool = False) -> SharedBuffer:
        buffer, other = super().allocate(num_bytes), super().allocate(num_bytes)
        buffer.file = other.file
        return buffer


class Unmapped(CpuPlatform):
    """Exports what no worker can map."""

    def allocate(self, num_bytes: int, *, lasting: bool = False) -> SharedBuffer:
        buffer = super().allocate(num_bytes)
        buffer.file = None
        return buffer


class Refusing(CpuPlatform):
    """Exports nothing."""

    def allocate(self, num_bytes: int, *, lasting: bool = False) -> SharedBuffer:
        raise RuntimeError("hipIpcGetMemHandle returned error 17")


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    server = ForkServer("cpu", spins=False, interprets=True)
    try:
        worker = server.spawn(WorkerFolder(tmp_path, tmp_path / "triton"), ())
        yield worker
        worker.kill_worker()
    finally:
        server.close()


def test_a_buffer_goes_there_and_back(worker: Worker) -> None:
    check_sharing(CpuPlatform(), worker, 20.0)
    for device, said in (
        (Elsewhere(), "bytes came back wrong"),
        (Unmapped(), "(?s)a worker cannot use a shared buffer: .*travels as a file descriptor"),
        (Refusing(), "a buffer cannot be shared: hipIpcGetMemHandle"),
    ):
        with pytest.raises(SharingFailed, match=said):
            check_sharing(device, worker, 20.0)


_TRIED = "ARENA_TEST_TRIED"
_RESTARTS = f"""
import os, sys
from arena.judge.process import service
from arena.judge.workers.sharing import SharingFailed
from arena.platforms.cpu.platform import CpuPlatform

class Device(CpuPlatform):
    def restart_environment(self):
        return {{**os.environ, "{_TRIED}": "1"}}

class Judge(service.JudgeService):
    def __init__(self, device):
        if "{_TRIED}" not in os.environ:
            raise SharingFailed("not in this way")
        super().__init__(device)

service.here = lambda name: Device()
service.main(sys.argv[1:], Judge)
"""


def test_a_judge_that_started_again_answers_on_the_same_channel(tmp_path: Path) -> None:
    script = tmp_path / "judge.py"
    script.write_text(_RESTARTS, encoding="utf-8")
    ours, theirs = socket.socketpair()
    command = [sys.executable, str(script), "cpu", str(theirs.fileno())]
    with subprocess.Popen(command, pass_fds=[theirs.fileno()], env=python_environment()) as process:
        theirs.close()
        channel: Channel[ToJudge, FromJudge] = Channel(ours, FromJudge)
        answer, _ = channel.receive(60.0)
        channel.close()
        assert process.wait(20.0) == 0
    assert isinstance(answer, Hello) and answer.environment.device.platform == "cpu"


class Unshared(service.JudgeService):
    """A judge whose buffers reach no worker."""

    def __init__(self, device: object) -> None:
        raise SharingFailed("4096 of 4096 bytes came back wrong")


class Restarted(BaseException):
    """In place of becoming another program."""

    def __init__(self, program: str, command: list[str], environment: dict[str, str]) -> None:
        self.command, self.environment = command, environment


def restart(program: str, command: list[str], environment: dict[str, str]) -> NoReturn:
    raise Restarted(program, command, environment)


@pytest.mark.parametrize(("mode", "other", "starts_in_network"), [("0", "1", False), ("1", "0", True)])
def test_a_judge_starts_once_more_with_the_other_mode(
    mode: str, other: str, starts_in_network: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IPC_MODE, mode)
    monkeypatch.delenv("ARENA_NETWORK", raising=False)
    device = RocmPlatform(FakeDevice(MI300X))
    monkeypatch.setattr(service, "here", lambda name: device)
    monkeypatch.setattr(os, "execve", restart)
    ours, theirs = socket.socketpair()
    with ours:
        with pytest.raises(Restarted) as restarted:
            service.main(["rocm", str(theirs.detach())], Unshared)
        assert restarted.value.environment[IPC_MODE] == other
        assert ("arena.processes.sandbox.network" in restarted.value.command) is starts_in_network
        assert restarted.value.command[-len(sys.orig_argv) + 1 :] == sys.orig_argv[1:]
    for name, value in restarted.value.environment.items():
        monkeypatch.setenv(name, value)
    assert device.versions()["ARENA_IPC_FALLBACK"] == f"{IPC_MODE}={other}", "in the record"
    ours, theirs = socket.socketpair()
    channel: Channel[ToJudge, FromJudge] = Channel(ours, FromJudge)
    service.main(["rocm", str(theirs.detach())], Unshared)
    answer, _ = channel.receive(1.0)
    assert isinstance(answer, HarnessFailed) and "came back wrong" in answer.detail
    channel.close()
