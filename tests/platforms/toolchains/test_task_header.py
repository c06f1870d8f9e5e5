"""`task.h`: the prototype that a HIP candidate must define."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.platforms.toolchains.task_header import alias, dtype_key, prototype, signature, task_header
from arena.results.record import Split
from arena.task.definition import DTYPE_BYTES, Axis, Case, InputSpec, ScalarSpec, Task, TaskType, TensorSpec, Work
from arena.task.expression import Expression
from tests.shipped import shipped_tasks

SIZE = (Expression("M"),)
INPUTS: tuple[InputSpec, ...] = (
    TensorSpec("x", SIZE, "$dtype"),
    ScalarSpec("eps", "float32", 1e-6),
    TensorSpec("cache", SIZE, "$kv_dtype", mutable=True),
    ScalarSpec("causal", "bool", False),
    ScalarSpec("offset", "int64", 0),
    TensorSpec("index", SIZE, "int32", optional=True),
)
TASK = Task(
    id="hip2hip/suite/demo",
    task_type=TaskType.HIP2HIP,
    suite="suite",
    name="demo",
    summary="",
    entry="demo",
    axes=(Axis("M", "rows", 1, 64), Axis("N", "columns", 1, 64)),
    dtypes={"dtype": ("float32", "float16"), "kv_dtype": ("bfloat16", "float8_e4m3fn")},
    constraints=(),
    inputs=INPUTS,
    outputs=(TensorSpec("y", SIZE, "$dtype"), TensorSpec("mask", SIZE, "uint8")),
    work=Work(Expression("M")),
    seen=(),
    heldout=(),
    path=Path("tasks/hip2hip/suite/demo"),
    definition=Path("tasks/hip2hip/suite/demo"),
    content_hash="",
)
ARGUMENTS = (
    "const T* x, float eps, KvT* cache, bool causal, int64_t offset, const int32_t* index, T* y, uint8_t* mask, "
    "int64_t M, int64_t N"
)


def case(dtype: str = "float16", kv_dtype: str = "bfloat16") -> Case:
    return Case("seen-01", Split.SEEN, "", {"M": 1, "N": 1, "dtype": dtype, "kv_dtype": kv_dtype})


def test_the_prototype_inputs_outputs_axes_stream() -> None:
    assert prototype(TASK) == f'extern "C" hipError_t demo({ARGUMENTS}, hipStream_t stream);'


def test_the_signature_is_in_the_language_of_the_task() -> None:
    assert signature(TASK) == prototype(TASK)
    python = replace(TASK, task_type=TaskType.TRITON2TRITON)
    assert signature(python) == "def demo(x, eps, cache, causal, offset, index, y, mask):"


def test_scratch_comes_just_before_the_stream() -> None:
    wanted = f'extern "C" hipError_t demo({ARGUMENTS}, void* workspace, hipStream_t stream);'
    assert prototype(TASK, workspace=True) == wanted


def test_the_header_names_the_dtypes_of_the_case() -> None:
    lines = task_header(TASK, case()).splitlines()
    assert lines[0] == "// Generated from task.yaml of hip2hip/suite/demo: do not edit."
    assert "using T = __half;" in lines and "using KvT = __hip_bfloat16;" in lines
    assert "#include <hip/hip_fp16.h>" in lines and "#include <hip/hip_bf16.h>" in lines
    assert "#include <hip/hip_fp8.h>" not in lines
    narrow = task_header(TASK, case("float32", "float8_e4m3fn")).splitlines()
    assert "using T = float;" in narrow and "using KvT = __hip_fp8_e4m3;" in narrow
    assert [line for line in narrow if line.startswith("#include <hip/")] == [
        "#include <hip/hip_runtime.h>",
        "#include <hip/hip_fp8.h>",
    ]


def test_one_of_two_prototypes_is_declared() -> None:
    text = task_header(TASK, case())
    before, rest = text.split("#ifdef ARENA_WORKSPACE\n")
    scratch, plain = rest.split("#else\n")
    assert "hipError_t" not in before
    assert scratch.splitlines() == [
        'extern "C" size_t demo_workspace(int64_t M, int64_t N);',
        prototype(TASK, workspace=True),
    ]
    assert plain.splitlines() == [prototype(TASK), "#endif"]
    assert text.count("#pragma once") == 1 and text.endswith("\n")


@pytest.mark.parametrize(
    ("variable", "name"),
    [("dtype", "T"), ("weight_dtype", "WeightT"), ("kv_cache_dtype", "KvCacheT"), ("out", "OutT")],
)
def test_aliases(variable: str, name: str) -> None:
    assert alias(variable) == name


def test_one_library_for_each_choice_of_dtypes() -> None:
    assert dtype_key(TASK, case()) == "float16-bfloat16"
    assert dtype_key(replace(TASK, dtypes={}), case()) == "fixed"


@pytest.mark.parametrize("dtype", sorted(DTYPE_BYTES))
def test_every_dtype_has_a_type_in_c(dtype: str) -> None:
    task = replace(TASK, inputs=(TensorSpec("x", SIZE, dtype),), outputs=(), dtypes={})
    text = task_header(task, case())
    assert f"hipError_t demo(const {prototype(task).split('const ')[1].split('*')[0]}* x, " in text
    needed = {
        "float16": "fp16",
        "bfloat16": "bf16",
        "float8_e4m3fn": "fp8",
        "float8_e4m3fnuz": "fp8",
        "float8_e5m2": "fp8",
    }
    assert text.count("#include <hip/hip_") == 1 + (dtype in needed)
    if dtype in needed:
        assert f"#include <hip/hip_{needed[dtype]}.h>" in text


@pytest.mark.parametrize(("arch", "type_there"), [("gfx942", "__hip_fp8_e4m3_fnuz"), ("gfx950", "__hip_fp8_e4m3")])
def test_fp8_is_the_type_of_the_architecture(arch: str, type_there: str) -> None:
    task = replace(TASK, inputs=(TensorSpec("x", SIZE, "fp8"),), outputs=(), dtypes={})
    text = task_header(task.on(arch), case())
    assert f"using fp8_t = {type_there};" in text and "hipError_t demo(const fp8_t* x, " in text
    assert "#include <hip/hip_fp8.h>" in text


@pytest.mark.slow
def test_the_starting_kernels_of_the_corpus_define_the_entry() -> None:
    for task in shipped_tasks().values():
        if task.task_type is TaskType.HIP2HIP:
            assert task.baseline_kernel is not None
            assert f"hipError_t {task.entry}(" in task.baseline_kernel.read_text(encoding="utf-8")
            assert f"hipError_t {task.entry}(" in task_header(task, task.seen[0])
