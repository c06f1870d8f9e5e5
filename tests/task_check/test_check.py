"""`arena tasks check` on small tasks: a good one passes, and each way of being worth nothing is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest

from arena.corpus.corpora import load_corpus
from arena.errors import FileError
from arena.judge.messages import Options
from arena.model.check import CheckOutcome, TaskCheck
from arena.task_check.judge import TaskCheckClient
from arena.task_check.run import CheckPlan, check_tasks

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
Write = Callable[[dict[str, str]], Path]
MakeJudge = Callable[[str, int | None], "Kept"]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(changed: dict[str, str]) -> Path:
        folder = tmp_path / "triton2triton/suite/affine"
        folder.mkdir(parents=True)
        files = {"task.yaml": TASK, "seen.yaml": SEEN, "heldout.yaml": HELDOUT}
        files |= {"reference.py": REFERENCE, "kernel.py": KERNEL, **changed}
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return tmp_path

    return written


class Kept:
    """A judge that outlives a check: starting one takes longer than most checks here."""

    def __init__(self, judge: TaskCheckClient) -> None:
        self.check = judge.check

    def close(self) -> None:
        """It is needed again."""

    kill = close


@pytest.fixture(scope="module")
def make_judge() -> Iterator[MakeJudge]:
    with TaskCheckClient("cpu") as judge:
        yield lambda platform, device: Kept(judge)


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


def test_a_check_without_timings_is_no_check_with_them() -> None:
    """It must not be taken for one on resume."""
    timed = CheckPlan("cuda", Options())
    assert replace(timed, timing=False).how != timed.how


def test_a_good_task_passes_and_its_check_can_be_resumed(
    make_judge: MakeJudge,
    write: Write,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root, folder = write({}), tmp_path_factory.mktemp("kept")
    check = checked(make_judge, root, folder=folder)
    assert {item.outcome for item in check.items} == {CheckOutcome.PASSED}, refused(check)
    wanted = {"reference", "tolerance", "x matters", "work", "builds", "correct", "margin", "builds for gfx942"}
    assert wanted <= {item.name for item in check.items}
    assert checked(make_judge, root, folder=folder, resume=True) == check


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "made"), [(KERNEL, 1), (KERNEL.replace("x * gain + offset", "x * gain"), 2)])
def test_what_failed_or_changed_is_checked_again_on_resume(
    make_judge: MakeJudge, write: Write, tmp_path_factory: pytest.TempPathFactory, kernel: str, made: int
) -> None:
    root, folder, examined = write({"kernel.py": kernel}), tmp_path_factory.mktemp("kept"), Mock()

    def counted(platform: str, device: int | None) -> Kept:
        judge = make_judge(platform, device)
        examined.side_effect = judge.check
        return cast(Kept, SimpleNamespace(check=examined, close=judge.close, kill=judge.kill))

    for _ in range(2):
        checked(counted, root, folder=folder, resume=True)
    assert examined.call_count == made
    (root / "triton2triton/suite/affine/reference.py").write_text(f"{REFERENCE}# changed\n", encoding="utf-8")
    checked(counted, root, folder=folder, resume=True)
    assert examined.call_count == made + 1


@pytest.mark.slow
def test_mutants_of_a_good_task_are_rejected(make_judge: MakeJudge, write: Write) -> None:
    check = checked(make_judge, write({}), most_mutants=40)
    assert check.mutation_score is not None and check.mutation_score > 0.5
    survivors = [fate for fate in check.mutants if fate.survived]
    assert all(f"{fate.name} ({fate.change})" in check.items[0].detail for fate in survivors)
    assert len(check.mutants) > 15 and any(fate.status == "out_of_bounds" for fate in check.mutants)


@pytest.mark.slow(but=["changed3"])
@pytest.mark.parametrize(
    ("changed", "item", "said"),
    [
        ({"reference.py": REFERENCE.replace("+ offset", "- offset")}, "correct", "wrong_result"),
        ({"reference.py": REFERENCE.replace("gain, offset", "gain, shift")}, "reference", "asks for shift"),
        ({"reference.py": "def reference(x, gain, offset):\n    return {}['y']\n"}, "reference", "KeyError"),
        ({"task.yaml": TASK.replace("dtype: $dtype}\nwork", f"dtype: $dtype, {LOOSE}}}\nwork")},
         "tolerance", "zeros passes"),
        ({"task.yaml": TASK.replace("fill: normal}\noutputs", "fill: {constant: 0}}\noutputs"),
          "reference.py": REFERENCE}, "offset matters", "y ignores offset"),
        ({"reference.py": "def reference(x, gain, offset):\n    return x * 0 + 1\n"}, "outputs vary", "y is constant"),
        ({"reference.py": "def reference(x, gain, offset):\n    return x.clone()\n"}, "tolerance", "an input passes"),
        ({"task.yaml": f"{TASK.rstrip()[:-1]}, bytes: 100 * M * N}}\n"}, "work", "counted"),
        ({"kernel.py": KERNEL.replace("x * gain + offset", "x * gain")}, "correct", "wrong_result"),
        ({"kernel.py": KERNEL.replace("gain + offset)", "gain + offset).to(tl.bfloat16)")}, "correct", "wrong"),
        ({"kernel.py": KERNEL.replace("tl.load(gain_ptr", "tl.nothing(gain_ptr")}, "correct", "compile_error"),
        ({"kernel.py": KERNEL.replace("BLOCK=128)", "BLOCK=128, waves_per_eu=2)")}, "builds for sm_90", "waves_per_eu"),
    ],
)  # fmt: skip
def test_what_is_worth_nothing_is_refused(
    make_judge: MakeJudge, write: Write, changed: dict[str, str], item: str, said: str
) -> None:
    found = refused(checked(make_judge, write(changed)))
    assert item in found and said in found[item], found


@pytest.mark.slow
def test_a_scalar_that_shapes_or_other_inputs_are_made_by_matters(make_judge: MakeJudge, write: Write) -> None:
    """With 300 in place of 2, the offset would be read out of range: the reference raises, and that is an answer."""
    scalars = "  pick: {scalar: int32, value: 2}\n  copies: {scalar: int32, value: 1}\noutputs:"
    kernel = KERNEL.replace("y_ptr, columns", "y_ptr, columns, pick, copies").replace(
        "offset, y):", "offset, pick, copies, y):"
    )
    changed = {
        "task.yaml": TASK.replace("outputs:", scalars).replace("[N], dtype", "[N * copies], dtype"),
        "seen.yaml": SEEN.replace("N: 1000,", "N: 1000, pick: 300,").replace("N: 130,", "N: 130, copies: 3,"),
        "reference.py": "def reference(x, gain, offset, pick, N):\n"
        "    return x * gain[:, None] + offset[:N] + offset[pick]\n",
        "kernel.py": kernel.replace("x * gain + offset", "x * gain + offset + tl.load(offset_ptr + pick)").replace(
            "y, columns, BLOCK", "y, columns, pick, copies, BLOCK"
        ),
        "heldout.yaml": HELDOUT.replace("N: 1,", "N: 3,"),
    }
    check = checked(make_judge, write(changed))
    outcomes = {item.name: item for item in check.items}
    assert outcomes["pick matters"].outcome is CheckOutcome.PASSED, refused(check)
    assert outcomes["copies matters"].detail == "shapes depend on it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"task.yaml": TASK.replace("outputs:", "output:")}, "unknown key"),
        ({"heldout.yaml": HELDOUT.replace("M: 5, N: 130, dtype: float16", "M: 5, N: 130, dtype: float32")}, "equals"),
    ],
)
def test_what_cannot_be_loaded_is_refused(
    make_judge: MakeJudge, write: Write, changed: dict[str, str], said: str
) -> None:
    with pytest.raises(FileError, match=said):
        checked(make_judge, write(changed))


@pytest.mark.slow
def test_a_declared_equivalent_must_be_one(make_judge: MakeJudge, write: Write) -> None:
    text = f'{TASK}equivalent_mutants: {{"1:1 mask": "there is no such mutant"}}\n'
    found = refused(checked(make_judge, write({"task.yaml": text}), most_mutants=5))
    assert found["mutants"].startswith("declared equivalent, but no surviving mutant: 1:1 mask")
