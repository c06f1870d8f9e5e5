"""Pennycook's measure against hand-computed numbers, what it leaves out, and runs of several devices in one report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.errors import RecordError, UsageError
from arena.reports.groups import ALL, groups
from arena.reports.performance_portability import harmonic_mean, portability_markdown, portability_table
from arena.reports.rows import trial_rows
from arena.results.record import Trial
from arena.results.verdict import Status
from arena.runs.records import RunRecords

from . import builders as b

OTHER = replace(b.GPU, platform="cuda", vendor="nvidia", arch="sm_90", name="NVIDIA H200", wave_size=32)


def at(task: str, efficiency: float | None, run: str, **options: str) -> Trial:
    """A trial of 0.5 ms at a fraction of the roofline; 0 fails, None has no roofline."""
    env = b.environment(OTHER if run == "h200" else b.GPU)
    if efficiency == 0:
        return b.trial(task, Status.WRONG_RESULT, run=run, env=env, **options)  # type: ignore[arg-type]
    bound_ms = None if efficiency is None else 0.5 * efficiency
    return b.trial(task, cases=[b.case("s1", 2.0, roofline_ms=bound_ms)], run=run, env=env, **options)  # type: ignore[arg-type]


def pair(first: dict[str, float | None], second: dict[str, float | None]) -> list[RunRecords]:
    return [
        b.run([at(task, one, name) for task, one in each.items()], name=name)
        for name, each in (("mi300x", first), ("h200", second))
    ]


def test_the_harmonic_mean_by_hand() -> None:
    assert harmonic_mean([0.5, 0.25]) == pytest.approx(2 / (2 + 4))
    assert harmonic_mean([0.6, 0.6, 0.6]) == pytest.approx(0.6)
    assert harmonic_mean([0.9, 0.0]) == 0


def test_the_table_by_hand() -> None:
    """1/3 for (0.5, 0.25), 0 for a task that fails on one device, 0.8 for (0.8, 0.8)."""
    first = {"hip2hip/m/a": 0.5, "hip2hip/m/b": 0.9, "triton2triton/m/c": 0.8}
    second = {"hip2hip/m/a": 0.25, "hip2hip/m/b": 0.0, "triton2triton/m/c": 0.8}
    found = portability_table(pair(dict(first), dict(second)))
    assert found.devices == ("AMD Instinct MI300X (gfx942)", "NVIDIA H200 (sm_90)")
    everything, hip, triton = found.rows
    assert [(row.task_type, row.tasks) for row in found.rows] == [(ALL, 3), ("hip2hip", 2), ("triton2triton", 1)]
    assert everything.portability.value == pytest.approx((1 / 3 + 0 + 0.8) / 3)
    assert hip.portability.value == pytest.approx(1 / 6)
    assert [one.value for one in hip.efficiency] == pytest.approx([0.7, 0.125])
    assert triton.portability.low is None
    assert "80.0 % [one task: no interval]" in portability_markdown(found)


def test_what_cannot_be_stated_is_left_out_and_named() -> None:
    first = {"hip2hip/m/a": 0.5, "hip2hip/m/b": 0.9, "hip2hip/m/c": 0.9}
    runs = pair(dict(first), {"hip2hip/m/a": 0.5, "hip2hip/m/b": None})
    changed = replace(runs[1], trials=(*runs[1].trials, at("hip2hip/m/c", 0.5, "h200", task_hash="new")))
    changed = replace(changed, info=replace(changed.info, tasks=(*changed.info.tasks, "hip2hip/m/c", "hip2hip/m/d")))
    found = portability_table([runs[0], changed])
    assert found.rows[0].tasks == 1
    notes = "; ".join(found.notes)
    assert "1 pairs of agent and task are not in the plan" in notes
    assert "left out: hip2hip/m/c" in notes
    assert "1 pairs of agent and task passed where no roofline is known" in notes


def test_an_attempt_that_fails_and_one_without_a_record_count_as_0() -> None:
    one = b.run([at("hip2hip/m/a", 0.8, "mi300x")], attempts=2, name="mi300x")
    two = b.run([at("hip2hip/m/a", 0.4, "h200")], name="h200")
    found = portability_table([one, two])
    assert [each.value for each in found.rows[0].efficiency] == pytest.approx([0.4, 0.4])
    assert "1 planned trials have no record" in found.notes[0]


def test_runs_that_have_no_table_are_refused() -> None:
    one, two = pair({"hip2hip/m/a": 0.5}, {"hip2hip/m/b": 0.5})
    for runs, said in (
        ([one], "two kinds of device, these are of AMD Instinct MI300X"),
        ([one, b.simple([1.0], env=b.environment(b.CPU))], "no roofline"),
        ([one, two], "no agent has a task in common"),
    ):
        with pytest.raises(UsageError, match=said):
            portability_table(runs)


def test_a_report_of_two_kinds_of_device_names_the_command() -> None:
    with pytest.raises(RecordError, match="arena portability"):
        trial_rows(pair({"hip2hip/m/a": 0.5}, {"hip2hip/m/a": 0.5}))


def test_runs_of_several_gpus_of_one_kind_are_one_report() -> None:
    """Two machines of one kind, with other drivers and amounts of memory: one device to a report, and to this table."""
    second = b.environment(replace(b.GPU, driver="6.12.0", memory_bytes=64 << 30))
    one = b.run([b.trial("hip2hip/m/a", cases=[b.case("s1", 2.0)])])
    two = b.run([b.trial("hip2hip/m/b", cases=[b.case("s1", 3.0)], run="r2", env=second)], name="r2")
    labels = [group.label for group in groups(trial_rows([one, two])) if group.task_type == ALL]
    assert labels == ["alpha (r1)", "alpha (r2)"]
    with pytest.raises(UsageError, match="two kinds of device"):
        portability_table([one, two])
