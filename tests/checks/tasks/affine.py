"""A small task that passes `arena tasks check`; tests change one thing and see what the check says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from arena.checks.tasks.judge import TaskCheckClient
from arena.checks.tasks.run import CheckPlan, check_tasks
from arena.results.check import TaskCheck
from arena.task.corpus.corpora import load_corpus
from arena.task.options import Options

TASK = """\
name: affine
summary: Every row of x times its gain, plus an offset for each column.
entry: affine
axes:
  M: {doc: rows, domain: [1, 4096]}
  N: {doc: columns, domain: [1, 4096]}
dtypes:
  dtype: [float32, float16]
inputs:
  x: {shape: [M, N], dtype: $dtype, fill: normal}
  gain: {shape: [M], dtype: $dtype, fill: {uniform: [1, 2]}}
  offset: {shape: [N], dtype: $dtype, fill: normal}
outputs:
  y: {shape: [M, N], dtype: $dtype}
work: {flops: 2 * M * N}
"""
SEEN = "".join(f"- {{M: {m}, N: {n}, dtype: {d}, timed: true}}\n" for m, n, d in (
    (5, 130, "float32"), (3, 67, "float16"), (7, 300, "float32"), (64, 64, "float16"), (9, 1000, "float32"),
))  # fmt: skip
HELDOUT = "".join(f"- {{kind: {k}, M: {m}, N: {n}, dtype: {d}, timed: true}}\n" for k, m, n, d in (
    ("edge", 1, 1, "float32"), ("alignment", 11, 129, "float16"), ("asymmetric", 2, 900, "float32"),
    ("scale_up", 40, 200, "float16"), ("dtype", 5, 130, "float16"),
))  # fmt: skip
LOOSE = "compare: {close: {atol: 5.0, rtol: 1.0}}"
REFERENCE = "def reference(x, gain, offset):\n    return x * gain[:, None] + offset\n"
KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x_ptr, gain_ptr, offset_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    gain = tl.load(gain_ptr + row).to(tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + i, mask=i < columns).to(tl.float32)
        offset = tl.load(offset_ptr + i, mask=i < columns).to(tl.float32)
        tl.store(y_ptr + row * columns + i, (x * gain + offset).to(y_ptr.dtype.element_ty), mask=i < columns)


def affine(x, gain, offset, y):
    rows, columns = x.shape
    affine_kernel[(rows,)](x, gain, offset, y, columns, BLOCK=128)
"""
PLACE = "triton2triton/suite/affine"
FILES = {
    "task.yaml": TASK,
    "seen.yaml": SEEN,
    "heldout.yaml": HELDOUT,
    "reference.py": REFERENCE,
    "kernel.py": KERNEL,
}
Write = Callable[[dict[str, str]], Path]
MakeJudge = Callable[[str, int | None], "Kept"]


class Kept:
    """A judge that outlives a check: starting one takes longer than most checks here."""

    def __init__(self, judge: TaskCheckClient) -> None:
        self.check = judge.check

    def close(self) -> None:
        """It is needed again."""

    kill = close


def checked(
    make_judge: MakeJudge, root: Path, *, most_mutants: int = 0, folder: Path | None = None, resume: bool = False
) -> TaskCheck:
    corpus = {task.id: task for task in load_corpus(root)}
    options = Options(seeds=2) if most_mutants else Options(seeds=2, targets=("gfx942", "sm_90"))
    plan = CheckPlan("cpu", options, most_mutants, folder=folder, resume=resume)
    (check,) = check_tasks(corpus, corpus, plan, lambda one: None, make_judge)
    return check


def refused(check: TaskCheck) -> dict[str, str]:
    return {item.name: item.detail for item in check.failed}
