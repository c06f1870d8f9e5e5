"""For which GPUs a candidate builds: the word, the counts, who is tied to one place, and the measure."""

from __future__ import annotations

import pytest

from arena.reports import targets
from arena.reports.groups import groups
from arena.reports.intervals import Method
from arena.reports.rows import TrialRow, trial_rows
from arena.reports.target_views import Reach, TargetsView, reach, targets_view, use_views
from arena.results.environment import DeviceFacts, Environment
from arena.results.portability import KernelUse, TargetBuild
from arena.results.verdict import Status

from . import builders as b

HOPPER = DeviceFacts("cuda", "nvidia", "sm_90", "NVIDIA H200", 32, 141 << 30, 50 << 20)
ON_AMD, ON_NVIDIA, ON_CPU = b.environment(), b.environment(HOPPER), b.environment(b.CPU)
AMD, AMD2, NVIDIA = b.built("gfx942"), b.built("gfx90a"), b.built("sm_90")
NO_AMD, NO_AMD2, NO_NVIDIA = b.refused("gfx942"), b.refused("gfx90a"), b.refused("sm_90")
SKIPPED = b.unchecked("gfx950")
PASSED, BROKEN, WRONG = Status.PASSED, Status.COMPILE_ERROR, Status.WRONG_RESULT


def row_of(builds: tuple[TargetBuild, ...], status: Status = PASSED, env: Environment = ON_CPU) -> TrialRow:
    (row,) = trial_rows([b.run([b.trial(status=status, targets=builds, env=env)])])
    return row


@pytest.mark.parametrize(
    ("builds", "word", "tied"),
    [
        ((AMD, NVIDIA), "everywhere", False),
        ((AMD, NVIDIA, SKIPPED), "everywhere", False),
        ((AMD, AMD2, NO_NVIDIA), "amd only", True),
        ((AMD, NO_NVIDIA, SKIPPED), "amd only", True),
        ((NO_AMD, NO_AMD2, NVIDIA), "nvidia only", True),
        ((AMD, NO_AMD2, NO_NVIDIA), "gfx942 only", True),
        ((AMD, NO_AMD2), "gfx942 only", True),
        ((AMD, NO_AMD2, NVIDIA), "in part", False),
        ((NO_AMD, NO_NVIDIA), "cpu only", True),
        ((SKIPPED,), "not checked", False),
    ],
)
def test_the_word_of_a_candidate_that_ran_on_the_cpu_platform(
    builds: tuple[TargetBuild, ...], word: str, tied: bool
) -> None:
    found = targets.portability(row_of(builds))
    assert found is not None
    assert (found.word, found.tied) == (word, tied)


@pytest.mark.parametrize(
    ("builds", "status", "env", "word"),
    [
        ((NO_AMD, NO_AMD2), PASSED, ON_NVIDIA, "nvidia only"),
        ((NO_AMD, NO_AMD2), WRONG, ON_NVIDIA, "nvidia only"),
        ((NO_AMD, NO_AMD2, b.refused("sm_100")), PASSED, ON_NVIDIA, "sm_90 only"),
        ((AMD, b.refused("sm_100")), PASSED, ON_NVIDIA, "in part"),
        ((AMD, AMD2), BROKEN, ON_NVIDIA, "amd only"),
        ((AMD, AMD2), PASSED, ON_NVIDIA, "everywhere"),
        ((AMD, AMD2), Status.LOAD_ERROR, ON_NVIDIA, "everywhere"),
        ((NO_NVIDIA, AMD2), PASSED, ON_AMD, "amd only"),
        ((NO_AMD, NO_NVIDIA), BROKEN, ON_AMD, "nowhere"),
        ((NO_AMD, NO_NVIDIA), BROKEN, ON_CPU, "nowhere"),
        ((AMD, NO_NVIDIA), PASSED, ON_AMD, "amd only"),
    ],
)
def test_the_gpu_that_it_ran_on_counts_as_one_more(
    builds: tuple[TargetBuild, ...], status: Status, env: Environment, word: str
) -> None:
    found = targets.portability(row_of(builds, status, env))
    assert found is not None
    assert found.word == word


def test_where_it_builds_and_where_not_is_named() -> None:
    found = targets.portability(row_of((NO_AMD, SKIPPED), env=ON_NVIDIA))
    assert found == targets.Portability("nvidia only", True, ("sm_90",), ("gfx942",), ("gfx950",))
    broken = targets.portability(row_of((NO_AMD, SKIPPED), BROKEN, ON_NVIDIA))
    assert broken == targets.Portability("nowhere", False, (), ("sm_90", "gfx942"), ("gfx950",))
    here = targets.portability(row_of((NO_AMD, NO_NVIDIA)))
    assert here == targets.Portability("cpu only", True, ("cpu (ran there)",), ("gfx942", "sm_90"), ())


def test_a_trial_without_targets_says_nothing() -> None:
    assert targets.portability(row_of(())) is None
    assert not targets.checked(row_of((SKIPPED,)))
    assert not targets.portable(row_of((SKIPPED,)))


def several() -> list[TrialRow]:
    """Two agents on four planned tasks: one ports everything it hands in, the other little; one trial is missing."""
    tasks = [f"hip2hip/m/{name}" for name in "abcd"]
    trials = [
        b.trial(tasks[0], targets=(AMD, NVIDIA, SKIPPED)),
        b.trial(tasks[1], Status.NOTHING_SUBMITTED),
        b.trial(tasks[2], WRONG, targets=(AMD, NVIDIA, SKIPPED)),
        b.trial(tasks[0], targets=(NO_AMD, NVIDIA, SKIPPED), agent="beta"),
        b.trial(tasks[1], targets=(AMD, NVIDIA, SKIPPED), agent="beta"),
        b.trial(tasks[2], BROKEN, targets=(NO_AMD, NO_NVIDIA, SKIPPED), agent="beta"),
        b.trial(tasks[3], Status.WAVE_SIZE_DEPENDENT, detail="wrong at 64", targets=(SKIPPED,), agent="beta"),
    ]
    return trial_rows([b.run(trials, tasks=tasks, agents=["alpha", "beta"], env=ON_CPU)])


def test_counts_leave_out_what_was_not_checked_and_what_was_not_evaluated() -> None:
    rows = several()
    assert targets.asked_targets(rows) == ("gfx942", "sm_90", "gfx950")
    assert targets.target_counts(rows) == [
        targets.TargetCount("alpha", "gfx942", 2, 2, 0),
        targets.TargetCount("alpha", "sm_90", 2, 2, 0),
        targets.TargetCount("alpha", "gfx950", 0, 0, 2),
        targets.TargetCount("beta", "gfx942", 1, 3, 0),
        targets.TargetCount("beta", "sm_90", 2, 3, 0),
        targets.TargetCount("beta", "gfx950", 0, 0, 4),
    ]


def test_the_measure_by_hand() -> None:
    shares = {group.label: group.mean["portability"] for group in groups(several()) if group.task_type == "all"}
    alpha, beta = shares["alpha"], shares["beta"]
    assert alpha is not None
    assert beta is not None
    assert (alpha.value, alpha.tasks, alpha.method) == (1, 2, Method.WILSON)
    assert beta.value == pytest.approx(1 / 3)
    assert beta.tasks == 3
    assert groups(trial_rows([b.simple([2.0])]))[0].mean["portability"] is None


def test_the_best_of_attempts_is_portable_once() -> None:
    trials = [b.trial(targets=(AMD, NVIDIA)), b.trial(attempt=2, targets=(AMD, NO_NVIDIA)), b.trial(attempt=3)]
    found = groups(trial_rows([b.run(trials, attempts=3)]))[0]
    mean, best = found.mean["portability"], found.best["portability"]
    assert mean is not None
    assert best is not None
    assert (mean.value, best.value) == (0.5, 1)


def test_who_is_tied_is_listed_with_what_the_compiler_said() -> None:
    log = "In file included from task.h:3\nkernel.hip:4:1: error: unknown type name\n1 error generated.\n"
    rows = several()
    assert [(row.label, found.word) for row, found in targets.tied(rows)] == [("beta", "nvidia only")]
    assert targets.complaint(row_of((AMD, b.refused("sm_90", log)))) == log
    (entry,) = view_of([row_of((AMD, b.refused("sm_90", log)))]).tied
    assert (entry.builds_for, entry.fails_for) == ("gfx942", "sm_90")
    assert entry.said == "kernel.hip:4:1: error: unknown type name"


def view_of(rows: list[TrialRow]) -> TargetsView:
    found = targets_view(rows, groups(rows))
    assert found is not None
    return found


def test_right_at_one_wave_size_only_is_listed() -> None:
    (entry,) = view_of(several()).waves
    assert (entry.agent, entry.task, entry.detail) == ("beta", "hip2hip/m/d", "wrong at 64")


def test_no_section_without_targets() -> None:
    rows = trial_rows([b.run([b.trial(status=Status.WAVE_SIZE_DEPENDENT)])])
    assert targets_view(rows, groups(rows)) is None


@pytest.mark.parametrize(
    ("builds", "expected"),
    [
        ((), Reach("–")),
        ((AMD, NVIDIA), Reach("everywhere", "", "good")),
        ((AMD, NO_NVIDIA), Reach("amd only", "fails for sm_90", "bad", loud=True)),
        ((AMD, NO_AMD2, NVIDIA), Reach("gfx942, sm_90", "fails for gfx90a")),
        ((SKIPPED,), Reach("not checked", "gfx950")),
    ],
)
def test_a_cell_of_the_task_table(builds: tuple[TargetBuild, ...], expected: Reach) -> None:
    assert reach(row_of(builds)) == expected


def test_resource_use_as_text() -> None:
    spilling = b.built("gfx942", KernelUse("k", 256, 65536, 36, 102, 0.125))
    unknown = b.built("sm_90", KernelUse("k", 32, 512))
    amd, nvidia = use_views(row_of((spilling, unknown, NO_AMD2)))
    assert (amd.registers, amd.scalar_registers, amd.shared) == ("256", "102", "64 KiB")
    assert (amd.spills, amd.spills_tone, amd.occupancy) == ("36 B", "bad", "12.5 %")
    assert (nvidia.scalar_registers, nvidia.shared, nvidia.spills_tone, nvidia.occupancy) == ("–", "512 B", "", "–")
