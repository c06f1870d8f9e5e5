"""An error of a task's author is an item that failed, with file and line, and no failure of the judge."""

from __future__ import annotations

import pytest

from tests.checks.tasks.affine import KERNEL, PLACE, REFERENCE, TASK, MakeJudge, Write, checked, refused

CUSTOM = TASK.replace("dtype: $dtype, fill: normal}", "dtype: $dtype, fill: custom}", 1)
INTEGERS = TASK.replace("  y: {shape: [M, N], dtype: $dtype}", "  y: {shape: [M, N], dtype: int32}")


def body(*lines: str) -> str:
    """A reference of these lines."""
    return "".join(["import torch\n\n\ndef reference(x, gain, offset):\n", *(f"    {line}\n" for line in lines)])


ERRORS = {
    "syntax": ({"reference.py": "def reference(x, gain, offset):\n    return x *\n"}, "reference.py:2: invalid syntax"),
    "no function": ({"reference.py": "def refrence(x):\n    return x\n"}, "defines no function `reference`: write one"),
    "import": ({"reference.py": f"import nothing_here\n{REFERENCE}"}, "reference.py:1: ModuleNotFoundError"),
    "exits": ({"reference.py": f"raise SystemExit(3)\n{REFERENCE}"}, "reference.py:1: SystemExit"),
    "raises": ({"reference.py": body("raise ValueError('no')")}, "reference.py:5: "),
    "too many": ({"reference.py": body("return x * gain[:, None] + offset, x")}, "returned 2 tensors, declared are 1"),
    "nothing": ({"reference.py": body("x * gain[:, None]")}, "returned a NoneType as result 1, expected a tensor"),
    "shape": (
        {"reference.py": body("return (x * gain[:, None] + offset).T")},
        "has shape (300, 7), declared is (7, 300)",
    ),
    "integers": (
        {"reference.py": body("return (9 * x * gain[:, None]).int()")},
        "reference.py:4: seen-03 (M=7 N=300 float32): `y` is returned as torch.int32, declared is float32",
    ),
    "floats": ({"task.yaml": INTEGERS}, "`y` is returned as torch.float64, declared is int32"),
    "in place": (
        {"reference.py": body("offset += 1", "return x * gain[:, None] + offset - 1")},
        "the reference writes to its input `offset`, which is read-only: compute on `offset.clone()`",
    ),
    "result in place": (
        {"reference.py": body("return x.mul_(gain[:, None]).add_(offset)")},
        "the reference writes to its input `x`",
    ),
    "no fill": ({"task.yaml": CUSTOM}, "defines no function `make_inputs`"),
    "fill of nothing": (
        {"task.yaml": CUSTOM, "reference.py": f"{REFERENCE}\n\ndef make_inputs(case, generator, count):\n    pass\n"},
        "`make_inputs` returned a NoneType, expected a dict of tensors by name",
    ),
    "fill of another": (
        {
            "task.yaml": CUSTOM,
            "reference.py": f"{REFERENCE}\n\ndef make_inputs(case, generator, count):\n    return {{}}\n",
        },
        "make_inputs gives no `x` of shape",
    ),
}
RARE = body("assert len(x) != 9", "return x * gain[:, None] + offset")


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_a_reference_is_the_authors(make_judge: MakeJudge, write: Write, name: str) -> None:
    changed, said = ERRORS[name]
    found = refused(checked(make_judge, write(changed)))
    assert "harness" not in found, found
    assert said in found["reference"] and f"{PLACE}/reference.py" in found["reference"], found


def test_so_is_one_that_only_some_case_shows(make_judge: MakeJudge, write: Write) -> None:
    found = refused(checked(make_judge, write({"reference.py": RARE})))
    assert "harness" not in found and "reference.py:5: seen-05" in found["reference"], found


def test_so_is_one_that_mutants_meet(make_judge: MakeJudge, write: Write) -> None:
    found = refused(checked(make_judge, write({"reference.py": "def reference(\n"}), most_mutants=2))
    assert [*found] == ["reference"] and "reference.py:1: '(' was never closed" in found["reference"]


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (KERNEL.replace("for start in range(0, columns, BLOCK):", "for start in"), "line 9"),
        (KERNEL.replace("def affine(x", "def affin(x"), "affine"),
        ("import nothing_here\n", "nothing_here"),
    ],
)
def test_an_error_in_a_kernel_is_too(make_judge: MakeJudge, write: Write, kernel: str, said: str) -> None:
    found = refused(checked(make_judge, write({"kernel.py": kernel})))
    assert "harness" not in found and said in found["correct"], found


@pytest.mark.parametrize(
    ("flops", "times"), [("200 * M * N", "100"), ("2 * M * M * N * N", "201"), ("5 * M * N", "2.5")]
)
def test_operations_that_are_not_done_are_refused(make_judge: MakeJudge, write: Write, flops: str, times: str) -> None:
    text = TASK.replace("flops: 2 * M * N", f"flops: {flops}")
    said = refused(checked(make_judge, write({"task.yaml": text})))["operations"]
    assert f": {times} times as many, at most 2 are allowed" in said and "counted" in said and "declared" in said


def test_a_task_may_say_why_it_declares_more(make_judge: MakeJudge, write: Write) -> None:
    text = TASK.replace("flops: 2 * M * N", "flops: 9 * M * N") + "exceptions: {operations: a reason in full}\n"
    check = checked(make_judge, write({"task.yaml": text}))
    assert {item.name: item.detail for item in check.items}["operations"] == "a reason in full"
    assert not check.failed


def test_bytes_are_compared_where_there_are_no_gradients(make_judge: MakeJudge, write: Write) -> None:
    """Nothing moves more than all its arguments, whatever the reference computes."""
    text = INTEGERS.replace("flops: 2 * M * N", "flops: 2 * M * N, bytes: 200 * M * N")
    rounds = body("return (x * gain[:, None] + offset).round().int()")
    said = refused(checked(make_judge, write({"task.yaml": text, "reference.py": rounds})))["work"]
    assert "declared" in said and "all arguments hold" in said
