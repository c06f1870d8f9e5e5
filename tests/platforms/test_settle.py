"""Waiting for a device that others have left work on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat
from types import SimpleNamespace

import pytest

from arena.errors import InfrastructureError
from arena.judge.compile.cross_compile import CrossCompilation
from arena.judge.evaluate import CandidateEvaluation, JudgeContext
from arena.judge.performance.timer import Timer
from arena.judge.workers.worker import ForkServers
from arena.platforms import gpu, here
from arena.platforms.cpu.platform import CpuPlatform
from arena.platforms.cuda.platform import CudaPlatform
from arena.results.environment import Environment
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options
from tests.platforms.fake_device import H200, FakeDevice

IDLE_S, BUSY_S = 1e-4, 2e-3

_HAMMER = """
import time, torch
a = torch.ones(8192, 8192, device="cuda")
a @ a  # the first product loads a library, and the device is idle meanwhile
torch.cuda.synchronize()
print("at it", flush=True)
end = time.monotonic() + 4
while time.monotonic() < end:
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
"""


class Scripted(CudaPlatform):
    """A device whose marker kernels take as long as they are told to, by a clock that nothing else advances."""

    def __init__(self, seconds: Iterator[float]) -> None:
        super().__init__(FakeDevice(H200))
        self._seconds = seconds
        self.tiny_launches = 0
        self.now = 0.0

    def launch_tiny_kernel(self) -> None:
        self.tiny_launches += 1
        self.now += next(self._seconds)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterator[float]], Scripted]:
    """Return a function that makes such a device and gives the module its clock."""

    def make(seconds: Iterator[float]) -> Scripted:
        device = Scripted(seconds)
        clock = SimpleNamespace(monotonic=lambda: device.now, perf_counter=lambda: device.now)
        monkeypatch.setattr(gpu, "time", clock)
        return device

    return make


def test_an_idle_device_has_settled_at_once(scripted: Callable[[Iterator[float]], Scripted]) -> None:
    device = scripted(repeat(IDLE_S))
    assert device.wait_until_idle(5.0)
    assert device.tiny_launches < 100


def test_work_of_others_is_waited_for(scripted: Callable[[Iterator[float]], Scripted]) -> None:
    device = scripted(chain(repeat(IDLE_S, 5), repeat(BUSY_S, 50), repeat(IDLE_S)))
    assert device.wait_until_idle(5.0)
    assert device.tiny_launches > 55 + 10


def test_a_quick_launch_between_slow_ones_is_not_enough(scripted: Callable[[Iterator[float]], Scripted]) -> None:
    device = scripted(cycle([IDLE_S] * 6 + [BUSY_S]))
    assert not device.wait_until_idle(0.3)


def test_a_device_that_was_idle_once_is_known_to_be_busy_later(
    scripted: Callable[[Iterator[float]], Scripted],
) -> None:
    device = scripted(chain(repeat(IDLE_S, 100), repeat(BUSY_S)))
    assert device.wait_until_idle(5.0)
    device.tiny_launches = 0
    device._seconds = repeat(BUSY_S)
    assert not device.wait_until_idle(0.3)
    assert device.tiny_launches > 20, "slow, one like the other, is still slow"


def test_nothing_hides_on_the_cpu() -> None:
    assert CpuPlatform().wait_until_idle(0.0)


class Busy(CpuPlatform):
    """Never settles."""

    def wait_until_idle(self, timeout_s: float) -> bool:
        return False


def test_nothing_is_judged_on_a_busy_device() -> None:
    device = Busy()
    facts = device.facts()
    template, cross_compilation = ForkServers("cpu", spins=False, interprets=True), CrossCompilation()
    try:
        task = load_task(TASKS / "triton2triton/normalization/rms_norm")
        context = JudgeContext(Timer(device, facts), template, cross_compilation, {})
        assert task.baseline_kernel is not None
        candidate_evaluation = CandidateEvaluation(task, Options(heldout=False), context)
        with pytest.raises(InfrastructureError, match="the device is busy"):
            candidate_evaluation.run(
                task.baseline_kernel, lambda isolation: Environment(facts, isolation), lambda stage, done, total: None
            )
        candidate_evaluation.close()
        assert not candidate_evaluation._folder.exists()
    finally:
        cross_compilation.close()
        template.close()


@pytest.mark.gpu
def test_on_gpu() -> None:
    device = here("auto")
    assert device.wait_until_idle(10.0)
    with subprocess.Popen([sys.executable, "-c", _HAMMER], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "at it\n"
        assert not device.wait_until_idle(0.5)
        assert device.wait_until_idle(30.0)
        assert other.wait(30) == 0
