"""References: loaded from a file, called with what they name, in the declared precision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from arena.errors import FileError
from arena.results.record import Split
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Arguments, Case, Task, arguments
from arena.task.numerics.reference import Reference, call_by_name
from tests.task.corpus.folders import TASK, write_task

MUTABLE = TASK.replace("fill: normal}", "fill: normal, mutable: true}")
X = torch.tensor([[1.0, 2.0]], dtype=torch.float16)


def first_case(root: Path, source: str, task: str = TASK) -> tuple[Reference, Arguments]:
    folder = write_task(root, task=task)
    (folder / "reference.py").write_text(source, encoding="utf-8")
    loaded = load_task(folder)
    first = loaded.seen[0]
    return Reference(folder / "reference.py"), arguments(loaded, replace(first, values={**first.values, "N": 2}))


def with_case(task: Task, **changes: object) -> Arguments:
    case = task.seen[0]
    return arguments(task, Case("seen-09", Split.SEEN, "", {**case.values, "N": 2, **changes}))  # type: ignore[dict-item]


def test_only_what_is_named_is_passed(tmp_path: Path) -> None:
    source = (
        "def reference(alpha, x, N, dtype, bias):\n"
        "    assert bias is None and N == 2\n"
        "    return (alpha * x).to(dtype)\n"
    )
    folder = write_task(tmp_path)
    (folder / "reference.py").write_text(source, encoding="utf-8")
    task = load_task(folder)
    case = Case("seen-09", Split.SEEN, "", {"M": 1, "N": 2, "D": 64, "dtype": "float16"}, frozenset({"bias"}))
    given = Reference(folder / "reference.py")(arguments(task, case), {"x": X})
    assert given["y"].tolist() == [[0.5, 1.0]] and given["y"].dtype == torch.float16


@pytest.mark.parametrize(
    ("precision", "dtype"), [("float64", torch.float64), ("float32", torch.float32), ("native", torch.float16)]
)
def test_the_declared_precision(tmp_path: Path, precision: str, dtype: torch.dtype) -> None:
    task = TASK + f"precision: {precision}\n"
    reference, case = first_case(tmp_path, "def reference(x):\n    return x + 1\n", task)
    given = reference(case, {"x": X})["y"]
    assert given.dtype == dtype and given.tolist() == [[2.0, 3.0]]


def test_integers_keep_their_dtype(tmp_path: Path) -> None:
    reference, case = first_case(tmp_path, "def reference(x):\n    return x\n")
    assert reference(case, {"x": torch.tensor([[2**60 + 1, 0]])})["y"].tolist() == [[2**60 + 1, 0]]


@pytest.mark.parametrize("precision", ["float64", "native"])
def test_a_reference_may_write_into_its_arguments(tmp_path: Path, precision: str) -> None:
    source = "def reference(x):\n    x.mul_(2)\n    return x + 1, x\n"
    reference, case = first_case(tmp_path, source, MUTABLE + f"precision: {precision}\n")
    given = reference(case, {"x": X})
    assert list(given) == ["y", "x"]
    assert given["x"].tolist() == [[2.0, 4.0]] and given["y"].tolist() == [[3.0, 5.0]]
    assert X.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(("returned", "count"), [("x, x", 2), ("()", 0), ("x, x, x", 3)])
def test_the_number_of_results_must_agree(tmp_path: Path, returned: str, count: int) -> None:
    reference, case = first_case(tmp_path, f"def reference(x):\n    return {returned}\n")
    with pytest.raises(FileError, match=f"returned {count} tensors, declared are 1"):
        reference(case, {"x": X})


def test_an_undeclared_parameter_is_named() -> None:
    with pytest.raises(ValueError, match="asks for gamma, delta, which the task does not declare"):
        call_by_name(lambda x, gamma, delta: x, {"alpha": 1}, {"x": 2})


def test_scalars_come_from_the_case(tmp_path: Path) -> None:
    reference, case = first_case(tmp_path, "def reference(x, alpha):\n    return x * alpha\n")
    assert reference(case, {"x": X})["y"].tolist() == [[0.5, 1.0]]
    assert reference(with_case(case.task, alpha=4.0), {"x": X})["y"].tolist() == [[4.0, 8.0]]


def test_inputs_may_be_built_by_the_reference(tmp_path: Path) -> None:
    source = (
        "import torch\n\ndef reference(x):\n    return x\n\n"
        "def make_inputs(case, generator, count):\n"
        "    return {'x': torch.rand(count, case['M'], case['N'], generator=generator)}\n"
    )
    reference, case = first_case(tmp_path, source)
    one, two = (reference.make_inputs(case, torch.Generator().manual_seed(seed), 3)["x"] for seed in (1, 2))
    assert one.shape == (3, 1, 2) and not torch.equal(one, two)


def test_regret_sees_inputs_and_outputs(tmp_path: Path) -> None:
    source = "def reference(x):\n    return x\n\ndef regret(x, y):\n    return {'y': x.max() - x.flatten()[y]}\n"
    reference, case = first_case(tmp_path, source)
    given = reference.regret(case, {"x": X}, {"y": torch.tensor([0])})
    assert given["y"].dtype == torch.float64 and given["y"].tolist() == [1.0]


def test_what_is_missing_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="defines no function `reference`"):
        first_case(tmp_path / "a", "reference = 3\n")
    reference, case = first_case(tmp_path / "b", "def reference(x):\n    return x\n")
    with pytest.raises(FileError, match="defines no function `make_inputs`"):
        reference.make_inputs(case, torch.Generator(), 1)
    with pytest.raises(FileError, match="defines no function `regret`"):
        reference.regret(case, {}, {})


def test_two_references_do_not_share_a_module(tmp_path: Path) -> None:
    one, case = first_case(tmp_path / "a", "def reference(x):\n    return x + 1\n")
    two, _ = first_case(tmp_path / "b", "def reference(x):\n    return x + 2\n")
    assert one(case, {"x": X})["y"].tolist() == [[2.0, 3.0]]
    assert two(case, {"x": X})["y"].tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        ("x = 1\ndef reference(x:\n    return x\n", 2, "'(' was never closed"),
        ("import nothing_of_the_kind\n", 1, "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("def reference(x):\n    y = x\n    return y.none\n", 3, "seen-01 (M=1 N=2 D=64 float32): AttributeError: "),
        ("import torch\n\ndef reference(x):\n    return x[:, :1]\n", 3, "`y` has shape (1, 1), declared is (1, 2)"),
        ("def reference(x, gamma):\n    return x\n", None, "asks for gamma"),
    ],
)
def test_faults_of_a_reference_name_file_line_and_case(
    tmp_path: Path, source: str, line: int | None, says: str
) -> None:
    with pytest.raises(FileError) as caught:
        reference, case = first_case(tmp_path, source)
        reference(case, {"x": X})
    assert (caught.value.path.name, caught.value.line) == ("reference.py", line)
    assert says in caught.value.problem


def test_faults_of_make_inputs_name_file_line_and_case(tmp_path: Path) -> None:
    source = "def reference(x):\n    return x\n\ndef make_inputs(case, generator, count):\n    return {'x': 1 / 0}\n"
    reference, case = first_case(tmp_path, source)
    with pytest.raises(FileError, match=r"reference\.py:5: seen-01 .*: ZeroDivisionError: division by zero"):
        reference.make_inputs(case, torch.Generator(), 1)
