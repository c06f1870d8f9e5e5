"""Fresh held-out cases: reproducible, inside the domain, never one that is known already."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.errors import UsageError
from arena.task.corpus.sampling import KINDS, sample_cases, to_yaml
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task, arguments
from tests.shipped import shipped_tasks
from tests.task.corpus.folders import TASK, write_task


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(write_task(tmp_path))


def test_a_seed_decides(task: Task) -> None:
    assert sample_cases(task, 8, seed=1) == sample_cases(task, 8, seed=1)
    assert [c.values for c in sample_cases(task, 8, seed=1)] != [c.values for c in sample_cases(task, 8, seed=2)]


@pytest.mark.parametrize("seed", range(5))
def test_cases_are_fair_and_new(task: Task, seed: int) -> None:
    cases = sample_cases(task, 12, seed)
    known = {task.identity(case) for case in task.cases}
    roof = max(arguments(task, case).num_bytes for case in task.cases)
    assert len({task.identity(case) for case in cases} - known) == 12
    for case in cases:
        assert case.kind in KINDS
        assert all(axis.admits(int(case.values[axis.name])) for axis in task.axes)
        assert case.values["dtype"] in task.dtypes["dtype"]
        worked_out = arguments(task, case)
        assert all(constraint.value(worked_out.names) for constraint in task.constraints)
        assert worked_out.num_bytes <= roof


def test_the_kinds_are_mixed(task: Task) -> None:
    assert len({case.kind for case in sample_cases(task, 18, seed=0)}) >= 4


def test_scalars_that_cases_set_are_drawn_too(task: Task) -> None:
    cases = sample_cases(task, 30, seed=3)
    assert {case.values["alpha"] for case in cases} == {0.5, 0.01}
    assert {case.values["flag"] for case in cases} == {False, True}


def test_a_limit_on_work_holds(task: Task) -> None:
    for case in sample_cases(task, 6, seed=4, max_work=20_000):
        worked_out = arguments(task, case)
        assert worked_out.flops + worked_out.num_bytes <= 20_000


def test_a_case_spelt_with_its_defaults_is_not_fresh(tmp_path: Path) -> None:
    """Sampling writes every scalar out; a committed case leaves it at its default."""
    text = TASK.replace("[1, 4096]", "[1, 6]").replace("domain: [8, 4096], multiple_of: 8", "values: [8]")
    text = text.replace("values: [64, 128]", "values: [64]").replace("[float32, float16]", "[float32]")
    rows = [f"{{M: {m}, N: 8, D: 64, dtype: float32{more}}}" for m in range(1, 6) for more in ("", ", alpha: 1.0")]
    seen, heldout = "".join(f"- {row}\n" for row in rows), ""
    for alpha in (2.0, 3.0, 4.0, 5.0, 6.0):
        heldout += f"- {{kind: structure, M: 1, N: 8, D: 64, dtype: float32, alpha: {alpha}}}\n"
    small = load_task(write_task(tmp_path, task=text, seen=seen, heldout=heldout))
    known = {small.identity(case) for case in small.cases}
    assert not known & {small.identity(case) for case in sample_cases(small, 12, seed=5)}


def test_a_domain_that_is_used_up_is_said(tmp_path: Path) -> None:
    text = TASK.replace("[1, 4096]", "[1, 10]").replace("domain: [8, 4096], multiple_of: 8", "values: [8]")
    text = text.replace("values: [64, 128]", "values: [64]").replace("[float32, float16]", "[float32]")
    cases = [f"M: {m}, N: 8, D: 64, dtype: float32}}\n" for m in range(1, 11)]
    seen = "".join("- {" + case for case in cases[:5])
    heldout = "".join("- {kind: edge, " + case for case in cases[5:])
    full = load_task(write_task(tmp_path, task=text, seen=seen, heldout=heldout))
    with pytest.raises(UsageError, match="only 0 of 1 fresh cases found"):
        sample_cases(full, 1, seed=0)


def test_what_is_written_is_read_back(task: Task, tmp_path: Path) -> None:
    cases = sample_cases(task, 9, seed=6)
    fresh = tmp_path / "heldout.yaml"
    fresh.write_text(to_yaml(cases), encoding="utf-8")
    assert load_task(task.path, fresh).heldout == cases


@pytest.mark.slow
def test_every_task_of_the_corpus_can_be_sampled(tmp_path: Path) -> None:
    for number, task in enumerate(list(shipped_tasks().values())[::4]):
        fresh = tmp_path / f"{number}.yaml"
        fresh.write_text(to_yaml(sample_cases(task, 5, seed=7)), encoding="utf-8")
        assert len(load_task(task.path, fresh).heldout) == 5


def test_sampled_cases_as_large_as_timed_ones_are_timed(task: Task) -> None:
    cases = sample_cases(task, 12, seed=5)
    least = min(arguments(task, case).num_bytes for case in task.cases if case.timed)
    timed = [case for case in cases if case.timed]
    assert 1 <= len(timed) <= sum(case.timed for case in task.heldout)
    assert all(arguments(task, case).num_bytes >= least for case in timed)
    assert to_yaml(cases).count("timed: true") == len(timed)
