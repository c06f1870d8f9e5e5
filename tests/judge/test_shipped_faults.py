"""Faults of kinds that engines have shipped, and honest styles: what the CPU platform must say of each.

A file of `tests/shipped_faults/<task>/` is a whole candidate. It begins: `expect: STATUS[ or STATUS][ in CASE]. Why.`
Those of `tests/honest_styles/<task>/` must pass.

With `ARENA_REPEATS=20` every fault is judged twenty times, after the first time on the case that rejected it.
A slow one that `tests.verdicts_kept` knows, with the judge as it is, is not judged again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from arena.judge.process.client import JudgeClient
from arena.judge.selection import emulation_work
from arena.results.effort import Effort
from arena.results.outcome import outcome_of
from arena.results.record import Evaluation
from arena.results.verdict import Status
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Case, arguments
from arena.task.options import Options
from tests.candidates import candidates, name, task_of
from tests.verdicts_kept import is_kept

_HEADER = re.compile(r'(?:// |""")expect: (?P<statuses>\w+(?: or \w+)*)(?: in (?P<case>[\w-]+))?\. \S')
_QUICK = {
    "rms_norm-asks_the_device",
    "temperature-tuned_in_place",
    "temperature-tuned_with_restore",
    "softmax-lanes_by_platform",
    "softmax-typed_tiles",
    "softmax-odd_row_stored_in_pairs",
    "reshape_and_cache_flash-padded_head",
    "rms_norm-sum_in_unfilled_memory",
    "silu-exponential_overflows",
    "swiglustep_and_mul-rows_in_grid_y",
    "kda_gate-offset_of_32_bits",
}
"""what no other test would find; the others are slow"""
REPEATS = int(os.environ.get("ARENA_REPEATS", "1"))
"""how often each fault is judged; more than once: first with all cases, whatever its file names"""
OPTIONS = Options(effort=Effort.CORRECTNESS, seeds=3, call_timeout_s=60.0, max_work=1e7)
_MOST_WORK = 1e6


def of_one_dtype(task: Path) -> Options:
    """Options with the small cases of one dtype, the first one's: each further dtype is compiled twice, for seconds."""
    found = load_task(task)
    alike = [case for case in found.cases if _dtypes(case) == _dtypes(found.seen[0])]
    small = [case.id for case in alike if emulation_work(arguments(found, case)) <= _MOST_WORK]
    return structs.replace(OPTIONS, case=(found.seen[0].id, *small), seeds=1)


def _dtypes(case: Case) -> list[str]:
    return [value for value in case.values.values() if isinstance(value, str)]


def narrowed(evaluation: Evaluation, task: Path) -> Options:
    """Options with the first and the last case that was wrong, and a seen one; all where none that was run is wrong."""
    found = load_task(task)
    small = {case.id for case in found.cases if emulation_work(arguments(found, case)) <= (OPTIONS.max_work or 0.0)}
    emulated = [one for one in evaluation.cases if one.case in small]  # of the others only the launch was
    wrong = [one.case for one in emulated if one.candidate not in (Status.PASSED, Status.NOT_RUN)]
    if not wrong:
        return OPTIONS
    values = [one.case for one in evaluation.cases if one.kind == "values"]  # where chance rejected it in a seen case
    return structs.replace(OPTIONS, case=(evaluation.cases[0].case, wrong[0], wrong[-1], *values))


def judged(judge: JudgeClient, path: Path, times: int, case: str) -> Iterator[Evaluation]:
    """Judge a candidate so many times: once with the first case and this one, or in full, then narrowed."""
    options = structs.replace(OPTIONS, case=("seen-01", case)) if case and times == 1 else OPTIONS
    for turn in range(times):
        evaluation = judge.evaluate(task_of(path), path, options)
        if turn == 0:
            options = narrowed(evaluation, task_of(path))
        yield evaluation


def last_word(evaluation: Evaluation) -> tuple[Status, str]:
    """The status of the last gate, and why."""
    return evaluation.verdicts[-1].status, evaluation.verdicts[-1].detail


def judge_unless_kept(path: Path) -> None:
    """Skip a slow candidate whose verdict is known."""
    if REPEATS == 1 and name(path) not in _QUICK and is_kept(path):
        pytest.skip("judged before, and neither the candidate nor its task nor the judge has changed")


def parameters(corpus: str) -> list[object]:
    """Every candidate of a corpus; those that are not of `_QUICK` are slow."""
    return [
        pytest.param(path, id=name(path), marks=[] if name(path) in _QUICK else [pytest.mark.slow])
        for path in candidates(corpus)
    ]


@pytest.mark.parametrize("path", parameters("honest_styles"))
def test_an_honest_style_is_accepted(cpu_judge: JudgeClient, path: Path) -> None:
    judge_unless_kept(path)
    task = task_of(path)
    status, why = last_word(cpu_judge.evaluate(task, path, of_one_dtype(task)))
    assert status is Status.PASSED, why


@pytest.mark.parametrize("path", parameters("shipped_faults"))
def test_a_fault_is_rejected(cpu_judge: JudgeClient, path: Path) -> None:
    judge_unless_kept(path)
    header = _HEADER.match(path.read_text(encoding="utf-8"))
    assert header is not None, "a fault begins with the status that is expected"
    wanted = tuple(Status(status) for status in header["statuses"].split(" or "))
    overlapping = "Overlapping" in path.read_text(encoding="utf-8").splitlines()[0]
    for evaluation in judged(cpu_judge, path, REPEATS, header["case"] or ""):
        status, why = last_word(evaluation)
        assert status in wanted, why
        assert not outcome_of(evaluation).solves
        assert not overlapping or "[wrong_in_order]" in why
