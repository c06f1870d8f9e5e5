"""Whether left-over work is noticed, decided from a device and a worker whose times are made up."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from arena.judge.process import service
from arena.judge.process.service import JudgeService
from arena.judge.workers import late_work
from arena.judge.workers.late_work import DELAYS, NAME, UNKNOWN, UNSEEN, measure_late_work
from arena.judge.workers.worker import Worker
from arena.platforms.base import Platform
from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import Linger, ToWorker

CLOCK_HZ = 2e9
TINY_S = 1e-3


@dataclass
class Machine:
    """A device and a worker on it, by a clock that nothing else advances.

    `one_at_a_time`: whether left-over work holds up the judge. `rate`: of the device's clock to the usual one.
    """

    one_at_a_time: bool
    rate: float = 1.0
    now: float = 0.0
    busy_until: float = 0.0
    lingered: int = 0

    def perf_counter(self) -> float:
        return self.now

    def wait_until_idle(self, timeout_s: float) -> bool:
        waits_s = max(0.0, self.busy_until - self.now) if self.one_at_a_time else 0.0
        self.now += min(waits_s, timeout_s) + TINY_S
        return waits_s <= timeout_s

    def ask(self, command: ToWorker, timeout_s: float) -> None:
        if isinstance(command, Linger):
            self.lingered += 1
            self.busy_until = self.now + command.cycles / CLOCK_HZ / self.rate
        else:
            self.now = max(self.now, self.busy_until) + TINY_S


@pytest.mark.parametrize("rate", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("one_at_a_time", "found"), [(True, DELAYS), (False, UNSEEN)])
def test_it_is_told_whatever_the_clock(
    one_at_a_time: bool, found: str, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(one_at_a_time, rate)
    monkeypatch.setattr(late_work, "time", SimpleNamespace(perf_counter=machine.perf_counter))
    assert measure_late_work(cast(Platform, machine), cast(Worker, machine), 60.0) == found
    assert machine.lingered <= 5


class OnAGpu(CpuPlatform):
    graphs = True


@pytest.mark.parametrize("found", [DELAYS, UNSEEN, UNKNOWN])
def test_the_record_has_it_and_the_device_knows(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device, judge = OnAGpu(), JudgeService.__new__(JudgeService)
    worker = SimpleNamespace(ask=lambda command, timeout_s: None, kill_worker=lambda: None, isolation="session")
    monkeypatch.setattr(service, "check_sharing", lambda *arguments: None)
    monkeypatch.setattr(service, "measure_late_work", lambda *arguments: found)
    attributes = {"_device": device, "_timer": SimpleNamespace(facts=device.facts()), "_late_work": ""}
    for name, value in {**attributes, "_fork_servers": SimpleNamespace(spawn=lambda *arguments: worker)}.items():
        monkeypatch.setattr(judge, name, value, raising=False)
    assert judge._tried_worker() == "session"
    assert judge.environment("session").versions[NAME] == found
    assert device.late_work_delays is (found == DELAYS)


def test_a_kernel_that_is_always_over_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(one_at_a_time=True, rate=1e12)
    monkeypatch.setattr(late_work, "time", SimpleNamespace(perf_counter=machine.perf_counter))
    assert measure_late_work(cast(Platform, machine), cast(Worker, machine), 60.0) == UNKNOWN
