"""Fault probes: a right answer passes, each faulty one is rejected by the case that shows it, and by no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.checks.tasks.probes import FAULTS, PROBES, Answers, ProbedCall, probe_task, rejects
from arena.judge.correctness.inputs import secret_generator
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task, arguments
from arena.task.numerics.reference import Reference
from tests.task.corpus.folders import write_task
from tests.tools import load

TASK = """\
name: scale
summary: The sum of a row and its elements times alpha.
entry: scale
axes:
  M: {doc: rows, domain: [1, 4096]}
  N: {doc: columns, domain: [1, 4096]}
  gap: {doc: elements between rows of x, domain: [0, 64], default: 0}
dtypes:
  dtype: [float32, float16]
inputs:
  x: {shape: [M, N], strides: [N + gap, 1], dtype: $dtype, fill: normal}
  row_lens: {shape: [M], dtype: int32, fill: {integers: [0, 2]}}
outputs:
  y: {shape: [M, N], dtype: $dtype}
  total: {shape: [M], dtype: float32}
work: {flops: 2 * M * N}
"""
SIZES = ((16, 64), (32, 128), (16, 128), (32, 64), (64, 64))
SEEN = "".join(f"- {{M: {M}, N: {N}, dtype: float32}}\n" for M, N in SIZES)
OTHERS = tuple(f"M: {M}, N: {N}, dtype: float32" for M, N in ((32, 16), (64, 16), (16, 32), (32, 32), (64, 32)))
REFERENCE = """\
def reference(x, row_lens):
    return x * 2, x.sum(dim=1) * (1 + row_lens)
"""
CASES = {
    "hard-coded size": "M: 16, N: 256, dtype: float32",
    "dropped mask": "M: 17, N: 64, dtype: float32",
    "power of two": "M: 16, N: 96, dtype: float32",
    "alignment": "M: 16, N: 62, dtype: float32",
    "contiguity": "M: 16, N: 64, gap: 16, dtype: float32",
    "one dtype": "M: 16, N: 64, dtype: float16",
}
PLAIN = "M: 16, N: 16, dtype: float32"


def loaded(root: Path, *cases: str) -> Task:
    """A task with these held-out cases, and others that show no fault of theirs."""
    heldout = "".join(f"- {{kind: structure, {case}}}\n" for case in (*cases, *OTHERS))
    folder = write_task(root, task=TASK, seen=SEEN, heldout=heldout)
    (folder / "reference.py").write_text(REFERENCE)
    return load_task(folder)


def right(call: ProbedCall) -> Iterator[Answers | None]:
    yield call.draw.answers


def seen_by(task: Task, index: int, fault: str) -> bool:
    reference = Reference(task.reference_path)
    probe = PROBES[fault][1]
    return rejects(task, arguments(task, task.heldout[index]), reference, probe, secret_generator("cpu")) is True


@pytest.mark.parametrize("fault", CASES)
def test_a_fault_is_rejected_by_the_case_that_shows_it_alone(tmp_path: Path, fault: str) -> None:
    task = loaded(tmp_path, PLAIN, CASES[fault])
    assert not seen_by(task, 0, fault)
    assert seen_by(task, 1, fault)


def test_right_answers_are_accepted(tmp_path: Path) -> None:
    task = loaded(tmp_path, PLAIN, *CASES.values())
    reference, generator = Reference(task.reference_path), secret_generator("cpu")
    for case in task.heldout:
        assert not rejects(task, arguments(task, case), reference, right, generator)


def test_a_table_names_the_first_case_or_why_there_is_none(tmp_path: Path) -> None:
    task = loaded(tmp_path, PLAIN, CASES["contiguity"])
    found = probe_task(task, Reference(task.reference_path), secret_generator("cpu"))
    assert tuple(found) == FAULTS
    assert found["contiguity"] == "heldout-02"
    assert found["batch 1"] == found["no empty row"] == "heldout-01"
    assert found["dropped mask"] == found["one dtype"] == ""
    assert found["wave size"] == "- Triton has no lanes"
    tool, table = load("fault_probes"), {task.id: found}
    assert (task.id, "one dtype") in tool.missed(table)
    assert f"| {tool.MISSED} |" in tool.page(table)
