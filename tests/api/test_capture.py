"""Calls of a function are recorded while a program runs, and a task begins from them."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from typer.testing import CliRunner

from arena.api.capture import capture
from arena.cli.app import app
from arena.errors import FileError, UsageError
from arena.task.corpus.captured_calls import OtherSeen, ScalarSeen, TensorSeen, read_calls
from arena.task.corpus.from_calls import task_from_calls
from arena.task.corpus.task_folder import load_task
from arena.task.definition import ScalarSpec, arguments

ENGINE, USER = "an_engine_of_this_test", "a_user_of_this_engine"


def norm(x: torch.Tensor, weight: torch.Tensor | None, eps: float = 1e-6, *, out: object = None) -> torch.Tensor:
    scale = 1.0 if weight is None else weight
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * scale


def add_into(out: torch.Tensor, parts: list[torch.Tensor]) -> None:
    for part in parts:
        out += part


class Layer:
    def forward(self, x: torch.Tensor, causal: bool = True) -> torch.Tensor:
        return x if causal else -x

    @staticmethod
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A module with functions, and another that has imported one of them by name."""
    module, user = types.ModuleType(ENGINE), types.ModuleType(USER)
    for thing in (norm, add_into, Layer):
        setattr(module, thing.__name__, thing)
    user.norm = norm  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, ENGINE, module)
    monkeypatch.setitem(sys.modules, USER, user)
    yield module


def test_calls_alike_are_counted_wherever_the_function_is_held(engine: types.ModuleType) -> None:
    with capture(f"{ENGINE}:norm") as recorder:
        for size in (4, 4, 8):
            sys.modules[USER].norm(torch.ones(2, size), torch.ones(size))
        engine.norm(torch.ones(8, 2).t(), None, 0.5)
    calls = recorder.calls()
    assert engine.norm is norm and sys.modules[USER].norm is norm, "what was replaced is back"
    assert [alike.calls for alike in calls.alike] == [2, 1, 1] and calls.calls == 4
    unsaid = {"eps": ScalarSeen(1e-6), "out": ScalarSeen(None)}
    given = {"x": TensorSeen((2, 4), "float32"), "weight": TensorSeen((4,), "float32"), **unsaid}
    assert calls.alike[0].arguments == given and list(calls.alike[0].arguments) == list(given)
    assert calls.alike[2].arguments == {
        "x": TensorSeen((2, 8), "float32", (1, 2)),
        "weight": ScalarSeen(None),
        "eps": ScalarSeen(0.5),
        "out": ScalarSeen(None),
    }
    assert calls.alike[0].results == (TensorSeen((2, 4), "float32"),)
    assert (calls.function, calls.device) == (f"{ENGINE}:norm", "cpu")


def test_items_of_lists_and_what_changes_are_seen(engine: types.ModuleType) -> None:
    with capture(f"{ENGINE}:add_into") as recorder:
        engine.add_into(torch.zeros(3), [torch.ones(3), torch.ones(1)])
    given = recorder.calls().alike[0].arguments
    assert list(given) == ["out", "parts.0", "parts.1"]
    assert [value.mutated for value in given.values() if isinstance(value, TensorSeen)] == [True, False, False]


def test_methods_are_recorded_without_their_object(engine: types.ModuleType) -> None:
    with capture(f"{ENGINE}:Layer.forward") as recorder:
        assert bool((Layer().forward(torch.ones(2), causal=False) == -1).all())
    assert recorder.calls().alike[0].arguments == {"x": TensorSeen((2,), "float32"), "causal": ScalarSeen(False)}
    with capture(f"{ENGINE}:Layer.doubled") as recorder:
        assert bool((Layer().doubled(torch.ones(2)) == 2).all())
    assert isinstance(vars(Layer)["doubled"], staticmethod)
    assert list(recorder.calls().alike[0].arguments) == ["x"]


def test_functions_without_a_signature_have_numbered_arguments() -> None:
    with capture("torch.nn.functional:gelu") as recorder:
        F.gelu(torch.ones(3), approximate="tanh")
    assert list(recorder.calls().alike[0].arguments) == ["arg0", "approximate"]


def test_a_triton_kernel_is_recorded_at_its_launches(engine: types.ModuleType) -> None:
    launched = []

    class Kernel:
        arg_names = ("x_ptr", "factor", "BLOCK")

        def run(self, *args: object, grid: object, warmup: bool, **options: object) -> None:
            launched.append((args, options))

    engine.kernel = Kernel()  # type: ignore[attr-defined]
    with capture(f"{ENGINE}:kernel") as recorder:
        engine.kernel.run(torch.ones(3), 2.0, grid=(1,), warmup=False, BLOCK=64, num_warps=4)
        engine.kernel.run(torch.ones(3), 2.0, grid=(1,), warmup=True, BLOCK=64)
    assert "run" not in vars(engine.kernel) and len(launched) == 2
    calls = recorder.calls()
    seen = {"x_ptr": TensorSeen((3,), "float32"), "factor": ScalarSeen(2.0), "BLOCK": ScalarSeen(64)}
    assert calls.calls == 1 and calls.alike[0].arguments == seen and calls.alike[0].results == ()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("norm", "write `package.module:function`"),
        ("no_such_module:norm", "no_such_module cannot be imported"),
        (f"{ENGINE}:norms", "has no attribute 'norms'"),
        (f"{ENGINE}:__name__", "is a str, and no function"),
        (f"{ENGINE}:Layer", "is a class: name one of its methods"),
        ("__main__:norm", "move it to a module"),
    ],
)
def test_a_target_that_is_none_is_named(engine: types.ModuleType, target: str, said: str) -> None:
    with pytest.raises(UsageError, match=said), capture(target):
        pass


def test_a_function_that_was_not_called_says_what_to_do(engine: types.ModuleType) -> None:
    with capture(f"{ENGINE}:norm") as recorder:
        pass
    with pytest.raises(UsageError, match="was not called in this process: name it as"):
        recorder.calls()


def test_a_task_begins_from_captured_calls(engine: types.ModuleType, tmp_path: Path) -> None:
    """Sizes that agree share an axis; the most frequent calls are seen cases, with their count; it loads."""
    with capture(f"{ENGINE}:norm") as recorder:
        for rows, times in ((3, 4), (5, 3), (7, 2), (9, 1), (11, 1), (13, 1)):
            for _ in range(times):
                engine.norm(torch.ones(rows, 40), torch.ones(40), 1e-5 if rows == 5 else 1e-6)
        engine.norm(torch.ones(3, 40, dtype=torch.bfloat16), None, 1e-6)
    path = tmp_path / "capture.json"
    recorder.calls().write(path)
    made = task_from_calls(read_calls(path), "triton2triton", "suite", "my_norm", tmp_path)
    task = load_task(made.folder)
    assert [axis.name for axis in task.axes] == ["x_0", "x_1"] and task.dtypes == {"dtype": ("float32", "bfloat16")}
    assert [(case.label, case.note) for case in task.seen][:2] == [
        ("x_0=3 x_1=40 float32", "4 of 13 calls"),
        ("x_0=5 x_1=40 float32 eps=1e-05", "3 of 13 calls"),
    ]
    timed = [case for case in task.cases if case.timed]
    assert timed and all(case.note == f"{case.calls} of 13 calls" for case in timed)
    assert not any(case.calls for case in task.cases if not case.timed)
    assert arguments(task, task.seen[0]).names["eps"] == 1e-6
    assert [case.kind for case in task.heldout] == ["edge", "production", "production", "scale_down", "scale_down"]
    assert any("without weight" in case.label for case in task.cases)
    assert any(line.startswith("task.yaml") and "where" not in line for line in made.todo)


def test_what_a_call_changes_is_its_output_where_it_returns_nothing(engine: types.ModuleType, tmp_path: Path) -> None:
    with capture(f"{ENGINE}:add_into") as recorder:
        engine.add_into(torch.zeros(30), [torch.ones(30)])
    made = task_from_calls(recorder.calls(), "triton2triton", "suite", "add_into", tmp_path)
    task = load_task(made.folder)
    assert [spec.name for spec in task.outputs] == ["out"] and [spec.name for spec in task.inputs] == ["parts_0"]


def test_the_command_runs_a_program_and_writes_its_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    script, path = tmp_path / "train.py", tmp_path / "calls.json"
    script.write_text(
        "import sys, torch\nfor n in map(int, sys.argv[1:]):\n    torch.nn.functional.silu(torch.ones(n))\n"
        "raise SystemExit(3 if len(sys.argv) > 3 else 0)\n",
        encoding="utf-8",
    )
    told = CliRunner().invoke(app, ["capture", "--out", str(path), "torch.nn.functional:silu", str(script), "5", "5"])
    assert told.exit_code == 0, told.output
    assert "2" in told.output and "100.0%" in told.output and "--from" in told.output
    assert read_calls(path).calls == 2
    told = CliRunner().invoke(app, ["capture", "-o", str(path), "torch.nn.functional:silu", str(script), "5", "6", "7"])
    assert told.exit_code == 1 and "ended with SystemExit: 3" in told.output and read_calls(path).calls == 3


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileError, match="is no file of `arena capture`"):
        read_calls(tmp_path / "x.json")


def test_what_is_neither_tensor_nor_number_is_named(engine: types.ModuleType) -> None:
    with capture(f"{ENGINE}:norm") as recorder:
        engine.norm(torch.ones(2, 2), None, out=Layer())
    assert recorder.calls().alike[0].arguments["out"] == OtherSeen("Layer")


def test_calls_of_other_ranks_are_left_out_and_scalars_take_the_widest_dtype(
    engine: types.ModuleType, tmp_path: Path
) -> None:
    with capture(f"{ENGINE}:norm") as recorder:
        for _ in range(2):
            engine.norm(torch.ones(2, 3, 40), None, 1)
        engine.norm(torch.ones(0, 3, 40), None, 0.5)
        engine.norm(torch.ones(3, 40), None, 1)
    made = task_from_calls(recorder.calls(), "torch2hip", "suite", "my_norm", tmp_path)
    task = load_task(made.folder)
    assert [axis.low for axis in task.axes] == [0, 1, 1]
    assert "# TODO: 1 calls have other numbers of dimensions" in (made.folder / "seen.yaml").read_text(encoding="utf-8")
    assert [spec.dtype for spec in task.inputs if isinstance(spec, ScalarSpec)] == ["float32"]
