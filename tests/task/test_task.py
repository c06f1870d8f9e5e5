"""Tasks and cases: domains, shapes, strides, spans, and the work of a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.results.record import Split
from arena.task.definition import (
    DTYPE_BYTES,
    FLOATING,
    Axis,
    Case,
    Fill,
    InputSpec,
    ScalarSpec,
    Task,
    TaskType,
    TensorSpec,
    Work,
    arguments,
)
from arena.task.expression import Expression, ExpressionError


def sizes(*texts: str) -> tuple[Expression, ...]:
    return tuple(map(Expression, texts))


def case(**values: int | float | str) -> Case:
    return Case("seen-01", Split.SEEN, "", values)


def make_task(
    inputs: tuple[InputSpec, ...],
    outputs: tuple[TensorSpec, ...] = (),
    *,
    work: Work | None = None,
    path: Path = Path("tasks/torch2hip/suite/demo"),
    task_type: TaskType = TaskType.TRITON2TRITON,
) -> Task:
    return Task(
        id=f"{task_type}/suite/demo",
        task_type=task_type,
        suite="suite",
        name="demo",
        summary="",
        entry="demo",
        axes=(Axis("M", "rows", 0, 64), Axis("N", "columns", 0, 64)),
        dtypes={"dtype": ("float32", "float16")},
        constraints=(),
        inputs=inputs,
        outputs=outputs,
        work=work or Work(Expression("2 * M * N")),
        seen=(),
        heldout=(),
        path=path,
        definition=path,
        content_hash="0",
    )


X = TensorSpec("x", sizes("M", "N"), "$dtype", fill=Fill("normal"))
INDEX = TensorSpec("index", sizes("M"), "int64", fill=Fill("permutation"))
BIAS = TensorSpec("bias", sizes("N"), "float32", fill=Fill("normal"), optional=True)
CACHE = TensorSpec("cache", sizes("M", "2"), "bfloat16", fill=Fill("normal"), mutable=True)
Y = TensorSpec("y", sizes("cdiv(N, 2)", "M"), "$dtype")
SCALE = ScalarSpec("scale", "float32", 0.5)


def test_an_axis_admits_its_domain() -> None:
    axis = Axis("K", "", 8, 64, multiple_of=8)
    assert [size for size in range(80) if axis.admits(size)] == [8, 16, 24, 32, 40, 48, 56, 64]
    assert axis.domain_text == "8 … 64, a multiple of 8"
    chosen = Axis("D", "", 64, 128, values=(64, 128))
    assert chosen.admits(128) and not chosen.admits(96)
    assert chosen.domain_text == "one of 64, 128"


def test_shapes_and_contiguous_strides() -> None:
    worked_out = arguments(make_task((X, SCALE), (Y,)), case(M=3, N=5, dtype="float16"))
    (x,), (y,) = worked_out.inputs, worked_out.outputs
    assert (x.shape, x.strides, x.dtype, x.span, x.numel, x.item_bytes) == ((3, 5), (5, 1), "float16", 15, 15, 2)
    assert (y.shape, y.strides) == ((3, 3), (3, 1))
    assert worked_out.names["dtype_bytes"] == 2


def test_declared_strides_leave_gaps() -> None:
    padded = TensorSpec("x", sizes("M", "N"), "$dtype", strides=sizes("2 * N", "1"))
    (x,) = arguments(make_task((padded,)), case(M=3, N=5, dtype="float32")).inputs
    assert (x.strides, x.numel, x.span) == ((10, 1), 15, 25)


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_spans_nothing(rows: int, columns: int) -> None:
    (x,) = arguments(make_task((X,)), case(M=rows, N=columns, dtype="float32")).inputs
    assert x.span == x.numel == 0
    assert x.strides == (max(columns, 1), 1)


def test_a_tensor_without_dimensions_has_one_element() -> None:
    single = TensorSpec("loss", (), "float32")
    (loss,) = arguments(make_task((X,), (single,)), case(M=2, N=2, dtype="float32")).outputs
    assert (loss.shape, loss.strides, loss.numel, loss.span) == ((), (), 1, 1)


def test_bytes_count_every_tensor_once_and_mutable_inputs_twice() -> None:
    task = make_task((X, INDEX, CACHE, BIAS, SCALE), (Y,))
    there = arguments(task, case(M=4, N=6, dtype="float16"))
    assert there.num_bytes == 4 * 6 * 2 + 4 * 8 + 2 * (4 * 2 * 2) + 6 * 4 + 3 * 4 * 2
    omitted = Case("seen-02", Split.SEEN, "", {"M": 4, "N": 6, "dtype": "float16"}, frozenset({"bias"}))
    left_out = arguments(task, omitted)
    assert left_out.tensors["bias"] is None
    assert [tensor.name for tensor in left_out.inputs] == ["x", "index", "cache"]
    assert there.num_bytes - left_out.num_bytes == 6 * 4
    assert omitted.label == "M=4 N=6 float16 without bias"


def test_declared_work_wins() -> None:
    work = Work(Expression("2 * M * N * scale"), Expression("M * dtype_bytes"), "tf32")
    worked_out = arguments(make_task((X, SCALE), (Y,), work=work), case(M=4, N=6, dtype="float16", scale=2.0))
    assert (worked_out.flops, worked_out.num_bytes, worked_out.number_format) == (96.0, 8.0, "tf32")


@pytest.mark.parametrize(
    ("inputs", "declared", "wanted"),
    [
        ((X,), "", "float16"),
        ((INDEX, X), "", "float16"),
        ((INDEX, CACHE), "", "bfloat16"),
        ((INDEX,), "", "float32"),
        ((X,), "$dtype", "float16"),
        ((X,), "float8_e4m3fn", "float8_e4m3fn"),
    ],
)
def test_number_format(inputs: tuple[InputSpec, ...], declared: str, wanted: str) -> None:
    task = make_task(inputs, work=Work(Expression("M"), number_format=declared))
    assert arguments(task, case(M=1, N=1, dtype="float16")).number_format == wanted


@pytest.mark.parametrize(
    ("arch", "wanted"),
    [
        ("gfx942", "float8_e4m3fnuz"),
        ("gfx950", "float8_e4m3fn"),
        ("gfx1200", "float8_e4m3fn"),
        ("sm_90", "float8_e4m3fn"),
        ("x86_64", "float8_e4m3fn"),
    ],
)
def test_fp8_is_the_format_that_the_architecture_multiplies(arch: str, wanted: str) -> None:
    declared = TensorSpec("q", sizes("M"), "fp8")
    task = make_task((X, declared), work=Work(Expression("M * dtype_bytes"), number_format="$dtype"))
    chosen = case(M=4, N=1, dtype="fp8")
    there = arguments(task.on(arch), chosen)
    assert [tensor.dtype for tensor in there.inputs] == [wanted, wanted]
    assert (there.number_format, there.flops, there.held_bytes) == (wanted, 4.0, 8)
    assert (task.on(arch).on("sm_90"), there.case.label) == (task, "M=4 N=1 fp8")


def test_scalars_have_their_default_or_what_the_case_sets() -> None:
    task = make_task((X, SCALE))
    assert arguments(task, case(M=1, N=1, dtype="float32")).scalar(SCALE) == 0.5
    assert arguments(task, case(M=1, N=1, dtype="float32", scale=2.0)).scalar(SCALE) == 2.0


def test_the_same_case_written_in_two_ways() -> None:
    task = make_task((X, SCALE, BIAS))
    plain = case(M=1, N=1, dtype="float32")
    assert task.identity(plain) == task.identity(case(M=1, N=1, dtype="float32", scale=0.5))
    assert task.identity(plain) != task.identity(case(M=1, N=1, dtype="float32", scale=0.25))
    assert task.identity(plain) != task.identity(Case("b", Split.SEEN, "", plain.values, frozenset({"bias"})))


def test_a_shape_without_a_value_is_an_error() -> None:
    halves = TensorSpec("h", sizes("M / 2"), "float32")
    with pytest.raises(ExpressionError, match="not a whole number"):
        arguments(make_task((halves,)), case(M=3, N=1, dtype="float32"))


def test_files_of_a_task(tmp_path: Path) -> None:
    translation = make_task((X,), path=tmp_path, task_type=TaskType.TORCH2HIP)
    assert (translation.baseline_kernel, translation.expert) == (None, None)
    (tmp_path / "expert.hip").touch()
    assert translation.expert == tmp_path / "expert.hip"
    triton = make_task((X,), path=tmp_path)
    assert triton.baseline_kernel == tmp_path / "kernel.py" and triton.expert is None
    assert make_task((X,), path=tmp_path, task_type=TaskType.HIP2HIP).baseline_kernel == tmp_path / "kernel.hip"


def test_tensors_come_in_call_order() -> None:
    task = make_task((X, SCALE, INDEX), (Y,))
    assert [spec.name for spec in task.tensors] == ["x", "index", "y"]


def test_floating_dtypes_have_a_size() -> None:
    assert set(FLOATING) < set(DTYPE_BYTES)
