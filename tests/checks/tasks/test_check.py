"""`arena tasks check` on small tasks: a good one passes, and each way of being worth nothing is refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest

from arena.checks.tasks.run import CheckPlan
from arena.errors import FileError
from arena.results.check import CheckOutcome
from arena.task.options import Options
from tests.checks.tasks.affine import (
    HELDOUT,
    KERNEL,
    LOOSE,
    REFERENCE,
    SEEN,
    TASK,
    Kept,
    MakeJudge,
    Write,
    checked,
    refused,
)


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
    strict = {item.name for item in check.items if item.detail.startswith("would fail at level strict")}
    assert {item.outcome for item in check.items if item.name not in strict} == {CheckOutcome.PASSED}, refused(check)
    wanted = {"reference", "tolerance", "x matters", "work", "builds", "correct", "margin", "builds for gfx942"}
    assert wanted <= {item.name for item in check.items}
    assert checked(make_judge, root, folder=folder, resume=True) == check


@pytest.mark.slow
@pytest.mark.parametrize(("row", "right"), [("tl.program_id(0).to(tl.int64)", True), ("tl.program_id(0)", False)])
def test_a_launch_that_is_too_large_to_be_emulated_is_checked_at_its_ends(
    make_judge: MakeJudge, write: Write, row: str, right: bool
) -> None:
    assert "tl.program_id(0).to(tl.int64)" in KERNEL
    files = {
        "task.yaml": TASK.replace("rows, domain: [1, 4096]", "rows, domain: [1, 1048576]"),
        "heldout.yaml": HELDOUT + "- {kind: large, M: 524300, N: 4096, dtype: float16}\n",
        "kernel.py": KERNEL.replace("tl.program_id(0).to(tl.int64)", row),
    }
    said = refused(checked(make_judge, write(files)))
    assert ("correct" not in said) == right, said
    assert right or "heldout-06" in said["correct"]


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
         "tolerance", "y: zeros in its place is accepted in all of 4 cases"),
        ({"task.yaml": TASK.replace("fill: normal}\noutputs", "fill: {constant: 0}}\noutputs"),
          "reference.py": REFERENCE}, "offset matters", "y ignores offset"),
        ({"reference.py": "def reference(x, gain, offset):\n    return x * 0 + 1\n"}, "outputs vary", "y is constant"),
        ({"reference.py": "def reference(x, gain, offset):\n    return x.clone()\n"}, "tolerance", "y: an input in"),
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
