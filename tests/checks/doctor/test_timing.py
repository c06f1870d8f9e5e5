"""`arena doctor --timing`: what it concludes from made-up timings, and that it runs on this machine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from arena.checks.doctor.timing import CPU_BAND, GPU_BAND, TimingErrors, check_timing, figures, unsteady
from arena.checks.doctor.timing_kernels import COUNTS, KERNELS, DurationKernel, Scale, kernels
from arena.platforms.condition import failed_checks_of
from arena.platforms.cuda.nvidia_smi import parse
from arena.platforms.smi import Condition
from arena.results.record import CaseTiming, Estimate, Mode, Round
from arena.task.corpus.task_folder import load_task
from tests.fakes import HERE

SPIN, LOOP, COPY = KERNELS


def timing(ms: float, *, width: float = 0.001, pace: float = 1.0) -> CaseTiming:
    """Eight rounds of this latency, the later four slower by `pace`."""
    estimate = Estimate(ms, ms * (1 - width), ms * (1 + width))
    rounds = tuple(Round(0.0, 0.0, 1.0, ms * (pace if place >= 4 else 1.0)) for place in range(8))
    return CaseTiming(estimate, estimate, Estimate(1, 1, 1), Mode.GRAPH, 1, 8, "", rounds)


def checked(kernel: DurationKernel, measured: list[float]) -> TimingErrors:
    found = figures(kernel, [timing(ms) for ms in measured], emulated=False)
    return TimingErrors(HERE, tuple(found), (), GPU_BAND)


def test_a_launch_costs_the_same_each_time_and_is_no_error() -> None:
    found = checked(SPIN, [0.0015 + 0.01 * count for count in COUNTS])
    assert found.holds and found.worst is not None and found.worst < 1e-9
    assert [one.anchor for one in found.known] == [True, False, False, False, False]
    assert [one.count for one in found.counting] == [2, 4, 8, 16], "10 µs are too short to count"


@pytest.mark.parametrize("share", [0.985, 1.015])
def test_a_clock_that_goes_wrong_is_an_error(share: float) -> None:
    found = checked(SPIN, [share * 0.01 * count for count in COUNTS])
    assert not found.holds and found.worst is not None and 0.01 < found.worst < 0.016


def test_what_is_out_of_proportion_is_an_error_whatever_its_unit() -> None:
    assert checked(COPY, [0.002 + 0.013 * count for count in COUNTS]).holds
    bent = checked(COPY, [0.013, 0.026, 0.055, 0.104, 0.208])
    assert not bent.holds
    assert [one.anchor for one in bent.known] == [True, False, False, False, True]


def test_nothing_long_enough_holds_nothing() -> None:
    found = checked(LOOP, [0.0001 * count for count in COUNTS])
    assert found.worst is None and not found.holds


def test_rounds_that_are_wide_or_move_are_doubted() -> None:
    assert list(unsteady([timing(1.0)], GPU_BAND)) == []
    (wide,) = unsteady([timing(1.0), timing(1.0, width=0.02)], GPU_BAND)
    assert "wider than ±1%" in wide and "check again" in wide
    (moved,) = unsteady([timing(1.0, pace=1.05)], GPU_BAND)
    assert "by 5.0%" in moved and "fix its clocks" in moved


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_the_kernels_are_tasks_like_others(kernel: DurationKernel, tmp_path: Path) -> None:
    task = load_task(kernel.write(tmp_path, emulated=False))
    assert len(task.seen) == len(COUNTS) and task.entry == kernel.name
    assert all(case.timed for case in task.seen), "a GPU times no other case"
    assert task.baseline_kernel is not None
    assert task.baseline_kernel.read_text(encoding="utf-8") == kernel.text


def test_a_copy_is_not_checked_in_an_emulation() -> None:
    assert COPY not in kernels(emulated=True) and kernels(emulated=False) == KERNELS
    assert SPIN.scale is Scale.CLOCK and SPIN in kernels(emulated=True)


GOOD = Condition(1980, 1980, 40, 100, lock_command="nvidia-smi --id=0 --lock-gpu-clocks=1980")
GOOD = replace(GOOD, reset_command="nvidia-smi --id=0 --reset-gpu-clocks")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (None, []),
        (GOOD, []),
        (replace(GOOD, clock_mhz=1200.0), ["1200 of 1980 MHz"]),
        (replace(GOOD, temperature_c=90.0), ["90 °C"]),
        (replace(GOOD, clock_mhz=1200.0, slowed_by=("the power cap",)), ["held down by the power cap"]),
    ],
)
def test_a_device_in_no_condition_to_be_measured(seen: Condition | None, said: list[str]) -> None:
    found = list(failed_checks_of(seen))
    assert len(found) == len(said) and all(text in doubt for text, doubt in zip(said, found, strict=True))


def test_what_the_vendors_tool_prints() -> None:
    assert parse("1980, 1980, 40, 100, 0x0000000000000000\n") == GOOD
    assert parse("1980, 1980, 40, 100, 0x0000000000000024") == replace(
        GOOD, slowed_by=("the power cap", "the driver's thermal limit")
    )
    for other in ("", "Field clocks_event_reasons.active is not a valid field", "[N/A], 1980, 40, 100, 0x0"):
        assert parse(other) is None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_here_on_the_cpu_platform() -> None:
    """That it runs and answers: how good the answer is depends on what else runs here."""
    found = check_timing("cpu")
    assert [(one.kernel, one.count) for one in found.known] == [(k, c) for k in ("spin", "loop") for c in COUNTS]
    assert found.band == CPU_BAND and found.worst is not None
    # It spins by the wall clock and is timed by processor time, of which a busy machine gives less and none more.
    assert all(0 < one.measured_ms < 1.5 * one.count * 10 for one in found.known if one.kernel == "spin")
    assert found.holds or found.warnings, json.dumps([one.error for one in found.known])


@pytest.mark.gpu
@pytest.mark.timeout(300)
def test_here_on_the_gpu() -> None:
    """The error of the whole path is at most 1 % for kernels of 20 µs and more."""
    found = check_timing("auto")
    assert {one.kernel for one in found.counting} == {"spin", "loop", "copy"}
    assert found.holds, [(one.kernel, one.count, one.error) for one in found.known]
