"""`tools/throughput.py` counts candidates by the hour, and says how long one took and what part of it is timed."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from arena.results.record import CaseTiming, Evaluation, Round
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options
from tests.reports import builders as b
from tests.tools import load

ROUND = Round(1e-3, 2e-3, 3e-3, 4e-3, baseline_single_s=5e-3, candidate_single_s=6e-3)
SECONDS_JUDGED = 0.1


class FakePool:
    """Judges, as many as there are devices, whose answer takes a tenth of a second."""

    def __init__(self, devices: int, speedup: float = 2.0) -> None:
        self._speedup = speedup
        self._free = threading.Semaphore(devices)
        self._lock = threading.Lock()
        self._here = 0
        self.most_here = 0
        self.texts: list[str] = []
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def evaluate(self, task: object, candidate: Path, options: Options) -> Evaluation:
        with self._lock:
            self._here += 1
            self.most_here = max(self.most_here, self._here)
            self.texts.append(candidate.read_text(encoding="utf-8"))
        with self._free:
            time.sleep(SECONDS_JUDGED)
        with self._lock:
            self._here -= 1
        case = b.case(speedup=self._speedup)
        assert isinstance(case.timing, CaseTiming)
        timed = replace(case, timing=replace(case.timing, rounds=(ROUND, ROUND)))
        trial = b.trial(cases=[timed])
        assert trial.evaluation is not None
        return replace(trial.evaluation, seconds={"compile": 0.02, "performance": 0.06, "build": 9.0})


@pytest.fixture
def tool() -> ModuleType:
    return load("throughput")


def rounds(tool: ModuleType, pool: FakePool, devices: int, in_flight: int, candidates: int, count: int) -> list[Any]:
    task = load_task(TASKS / "triton2triton/normalization/rms_norm")
    kernels = [(task, task.baseline_kernel)] * candidates
    return list(tool.measure(pool, kernels, Options(), [lambda: 0.5] * devices, in_flight, count))


def measured(tool: ModuleType, pool: FakePool, devices: int, in_flight: int, candidates: int) -> Any:
    (found,) = rounds(tool, pool, devices, in_flight, candidates, 1)
    return found


def test_each_device_has_candidates_in_flight_and_none_was_seen_before(tool: ModuleType) -> None:
    pool = FakePool(2)
    found = measured(tool, pool, 2, 3, 8)
    assert pool.most_here == 6
    assert len(set(pool.texts)) == 2 + 8, "one a device to warm it, then each candidate once"
    assert len(found.judged) == 8 and found.wall_s >= 4 * SECONDS_JUDGED


def test_each_round_judges_each_task_with_a_text_of_its_own(tool: ModuleType) -> None:
    pool = FakePool(1)
    first, second = rounds(tool, pool, 1, 2, 3, 2)
    assert (first.round, second.round) == (1, 2) and len(first.judged) == len(second.judged) == 3
    assert len(set(pool.texts)) == 1 + 2 * 3


def test_after_some_seconds_nothing_is_begun(tool: ModuleType) -> None:
    pool, task = FakePool(1), load_task(TASKS / "triton2triton/normalization/rms_norm")
    kernels = [(task, task.baseline_kernel)] * 20
    (found,) = tool.measure(pool, kernels, Options(), [lambda: 0.5], 2, 1, 2.5 * SECONDS_JUDGED)
    assert 2 <= len(found.judged) < 10
    assert f"{len(found.judged)} evaluations" in tool.text(found)


def test_how_long_kernels_run_is_asked_while_the_queue_is_full(tool: ModuleType) -> None:
    found = measured(tool, FakePool(2), 2, 3, 18)
    assert len(found.busy) % 2 == 0 and {share for _, share in found.busy} == {0.5}
    found = replace(found, busy=((0.01, 0.1), (found.begun_s, 0.8), (found.begun_s + 1, 0.2)))
    assert found.running == 0.8, "neither before the first was judged, nor after the last was begun"
    assert "kernels run for 80% of the devices' time" in tool.text(found)
    assert "kernels run" not in tool.text(replace(found, busy=()))


def test_a_driver_that_cannot_be_asked_is_said_once(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def share() -> float:
        raise RuntimeError("nvidia-ml-py is missing")

    with tool.BusyDevices([share]) as busy:
        time.sleep(3 * tool.SAMPLE_S)
    assert busy.samples == []
    assert capsys.readouterr().err.count("nvidia-ml-py is missing") == 1


def test_its_figures_follow_from_the_records(tool: ModuleType) -> None:
    found = replace(measured(tool, FakePool(1), 1, 2, 4), wall_s=0.8)
    assert found.an_hour == pytest.approx(4 / 0.8 * 3600)
    assert found.judging == pytest.approx(4 * 0.08 / 0.8)
    assert found.timed == pytest.approx(4 * 2 * 21e-3 / 0.8)
    assert replace(found, devices=2).timed == pytest.approx(found.timed / 2)
    said = tool.text(found)
    assert "4 evaluations (4 passed), effort full, on 1 device(s), 2 in flight for each: 0.8 s" in said
    assert "18000 evaluations an hour" in said and "judging 40% of the devices' time, timed passes 21%" in said
    assert "performance  median   0.06 s" in said
    first = found.judged[0]
    same = measured(tool, FakePool(1, speedup=1.0), 1, 1, 2).judged[0]
    assert (first.speedups, first.hold_one) == ((2.0,), 0) and (same.speedups, same.hold_one) == ((1.0,), 1)
    apart = replace(
        found, judged=(replace(first, speedups=(1.002, 0.99), hold_one=1), replace(first, speedups=(1.0,), hold_one=1))
    )
    assert "speedups: median 1.0000, furthest from 1 is 0.9900, of 3 cases\n2 of their intervals hold 1" in tool.text(
        apart
    )


def test_latencies_are_compared_with_those_of_an_earlier_round(tool: ModuleType, tmp_path: Path) -> None:
    found = measured(tool, FakePool(1), 1, 2, 2)
    ((case, ms),) = found.judged[0].latencies_ms.items()
    file = tmp_path / "alone.jsonl"
    rates = ({case: ms / 1.25, "another": 1.0}, {case: -1.0})
    lines = [replace(found, judged=(replace(found.judged[0], latencies_ms=each),)) for each in rates]
    file.write_text("\n".join(json.dumps(asdict(line)) for line in lines) + "\n", encoding="utf-8")
    assert tool.read(file) == lines
    said = tool.compared(found, lines[0])
    assert f"median 1.2500, furthest from 1 is 1.2500 (triton2triton/normalization/rms_norm {case}), of 1 cases" in said
    assert tool.compared(found, lines[1]).startswith("no latency of a case is known from before\nwhile the queue")


def test_a_rate_is_compared_by_what_the_judge_takes_while_the_queue_is_full(tool: ModuleType) -> None:
    """Three evaluations of a second on one device, and four on two that take a tenth longer and idle at the end."""

    def one(task: str, takes_s: float, done_s: float, latency_s: float) -> Any:
        return tool.Judged(task, "passed", latency_s, 0.1, {"performance": takes_s}, (1.0,), 1, "", done_s, {"x": 1.0})

    alone = tool.Throughput(1, 1, 2, "full", 3.0, tuple(one(f"t{n}", 1.0, n + 1.0, 1.0) for n in range(3)))
    assert alone.judging_full == pytest.approx(1.0)
    done = [one(f"t{n}", 1.1, 1.1 * (n // 2 + 1), 1.1) for n in range(5)]
    both = tool.Throughput(1, 2, 1, "full", 3.3, tuple(done))
    assert both.an_hour / alone.an_hour == pytest.approx(5 / 3.3)
    assert both.judging_full == pytest.approx(1.0), "the last one alone is no full queue"
    said = tool.compared(both, alone)
    assert "1.100 times as long for the same 3 tasks: 1.82 times as many evaluations" in said


def test_a_hostile_neighbour_is_asked_for_until_the_end(tool: ModuleType) -> None:
    pool, task = FakePool(1), load_task(TASKS / "triton2triton/fundamentals/add")
    with tool.HostileNeighbour(pool, task, Options()):
        while len(pool.texts) < 2:
            time.sleep(0.01)
    ended = len(pool.texts)
    assert pool.cancelled, "what it asked for last need not be waited for"
    assert all("pbkdf2_hmac" in text for text in pool.texts) and len(set(pool.texts)) == ended
    time.sleep(2 * SECONDS_JUDGED)
    assert len(pool.texts) == ended


def test_the_same_tasks_are_taken_each_time(tool: ModuleType) -> None:
    ids = [f"{number:03}" for number in range(196)]
    assert tool.evenly(ids, 4) == ["000", "049", "098", "147"] and tool.evenly(ids[:3], 4) == ids[:3]
    assert len(set(tool.evenly(ids, 60))) == 60


@pytest.mark.slow
def test_two_tasks_by_the_real_judge(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "figures.json"
    chosen = ["triton2triton/normalization/rms_norm", "triton2triton/fundamentals/add"]
    given = ["--platform", "cpu", "--effort", "correctness", "--in-flight", "2", "--json", str(kept), *chosen]
    monkeypatch.setattr("sys.argv", ["throughput.py", *given])
    tool.main()
    assert "2 evaluations (2 passed), effort correctness" in capsys.readouterr().out
    judged = json.loads(kept.read_text(encoding="utf-8"))["judged"]
    assert [one["task"] for one in judged] == sorted(chosen) and all(one["passes_s"] == 0.0 for one in judged)
    assert all(one["latency_s"] >= one["stages_s"]["correctness"] > 0.0 for one in judged)


def test_an_interrupted_round_counts_what_was_judged(tool: ModuleType) -> None:
    class Interrupted(FakePool):
        def evaluate(self, task: object, candidate: Path, options: Options) -> Evaluation:
            if len(self.texts) == 5:
                signal.raise_signal(signal.SIGINT)
            return super().evaluate(task, candidate, options)

    pool = Interrupted(1)
    (found,) = rounds(tool, pool, 1, 1, 8, 2)
    assert pool.cancelled and 2 <= len(found.judged) <= 5


def test_the_steady_rate_leaves_out_the_start_and_the_end(tool: ModuleType) -> None:
    found = measured(tool, FakePool(1), 1, 2, 4)
    times = zip((8.0, 9.0, 10.0, 11.0), (8.0, 6.0, 2.0, 2.0), strict=True)
    judged = [replace(found.judged[0], done_s=done, latency_s=latency) for done, latency in times]
    steady = replace(found, judged=tuple(judged))
    assert steady.begun_s == 9.0 and steady.steady_an_hour == 3600.0
    assert math.isnan(replace(found, judged=tuple(judged[:1])).steady_an_hour)
