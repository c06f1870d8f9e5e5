"""`task.h`: the prototype a HIP candidate must define, generated from task.yaml: a wrong one does not compile."""

from __future__ import annotations

from arena.task.definition import Axis, Case, ScalarSpec, Task, TensorSpec
from arena.task.fp8 import FP8

_C_TYPES = {
    "float64": "double",
    "float32": "float",
    "float16": "__half",
    "bfloat16": "__hip_bfloat16",
    FP8: "fp8_t",
    "float8_e4m3fn": "__hip_fp8_e4m3",
    "float8_e4m3fnuz": "__hip_fp8_e4m3_fnuz",
    "float8_e5m2": "__hip_fp8_e5m2",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "bool",
}
_HEADERS = {
    "float16": "hip/hip_fp16.h",
    "bfloat16": "hip/hip_bf16.h",
    FP8: "hip/hip_fp8.h",
    "float8_e4m3fn": "hip/hip_fp8.h",
    "float8_e4m3fnuz": "hip/hip_fp8.h",
    "float8_e5m2": "hip/hip_fp8.h",
}


def dtype_key(task: Task, case: Case) -> str:
    """The dtypes a case chooses, such as `float16`; one library is built for each."""
    return "-".join(str(case.values[name]) for name in task.dtypes) or "fixed"


def alias(variable: str) -> str:
    """C++ name of a dtype variable: `dtype` is `T`, `weight_dtype` is `WeightT`."""
    stem = variable.removesuffix("dtype").rstrip("_")
    return "".join(word.capitalize() for word in stem.split("_") if word) + "T"


def task_header(task: Task, case: Case) -> str:
    """The text of `task.h` for the dtypes of one case."""
    chosen = {name: str(case.values[name]) for name in task.dtypes}
    dtypes = {*chosen.values(), *(spec.dtype for spec in task.tensors)}
    includes = ["hip/hip_runtime.h", *sorted({_HEADERS[name] for name in dtypes if name in _HEADERS})]
    lines = [
        # By its definition: tasks that share one share what was built.
        f"// Generated from task.yaml of {'/'.join(task.definition.parts[-3:])}: do not edit.",
        "#pragma once",
        *(f"#include <{header}>" for header in includes),
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        *([f"using {_C_TYPES[FP8]} = {_C_TYPES[task.fp8]};"] if FP8 in dtypes else []),
        *(f"using {alias(name)} = {_C_TYPES[dtype]};" for name, dtype in chosen.items()),
        "",
        "// Scratch memory: define ARENA_WORKSPACE before including this file, and the size function below.",
        "#ifdef ARENA_WORKSPACE",
        f'extern "C" size_t {task.entry}_workspace({", ".join(_axes(task))});',
        prototype(task, workspace=True),
        "#else",
        prototype(task),
        "#endif",
        "",
    ]
    return "\n".join(lines)


def signature(task: Task) -> str:
    """The head of the entry as a candidate has to write it: of a Python function, or its prototype in C++."""
    if not task.task_type.triton:
        return prototype(task)
    return f"def {task.entry}({', '.join(spec.name for spec in (*task.inputs, *task.outputs))}):"


def prototype(task: Task, *, workspace: bool = False) -> str:
    """The declaration of the entry: pointers and scalars in order, the axes, scratch if asked for, the stream."""
    parameters = [_parameter(spec) for spec in task.inputs]
    parameters += [f"{_element(spec)}* {spec.name}" for spec in task.outputs]
    parameters += [*_axes(task), *(["void* workspace"] if workspace else []), "hipStream_t stream"]
    return f'extern "C" hipError_t {task.entry}({", ".join(parameters)});'


def passed_axes(task: Task) -> tuple[Axis, ...]:
    """Return the sizes that a HIP function takes: all but those with a default that are in no shape and no stride.

    Such a size only says where a tensor begins, which its pointer says as well.
    """
    sizes = (size for spec in task.tensors for size in (*spec.shape, *spec.strides))
    named = frozenset[str]().union(*(size.names for size in sizes))
    return tuple(axis for axis in task.axes if axis.default is None or axis.name in named)


def _axes(task: Task) -> list[str]:
    return [f"int64_t {axis.name}" for axis in passed_axes(task)]


def _parameter(spec: TensorSpec | ScalarSpec) -> str:
    if isinstance(spec, ScalarSpec):
        return f"{_C_TYPES[spec.dtype]} {spec.name}"
    constant = "" if spec.mutable else "const "
    return f"{constant}{_element(spec)}* {spec.name}"


def _element(spec: TensorSpec) -> str:
    return alias(spec.dtype[1:]) if spec.dtype.startswith("$") else _C_TYPES[spec.dtype]
