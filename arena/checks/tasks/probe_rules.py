"""In which tasks a kernel fault can occur: rules over declarations. Used by the fault probes.

A rule returns an empty string where the fault can occur, else why it cannot.
"""

from __future__ import annotations

from arena.checks.tasks.offsets import admits_large
from arena.task.definition import LARGE_ELEMENTS, Case, ScalarSpec, Task, Tensor, TensorSpec, arguments
from arena.task.expression import Expression, Number

VECTOR_BYTES = 16
_COUNTS = ("lens", "num_tokens", "counts")
_NO_COUNTS = ("min_lens", "output_counts", "num_tokens_post_padded")
"""lengths to be reached, counts of tokens, and entries with padding: 0 is nothing special in them"""


def int32_case(task: Task) -> str:
    """Return the case in which an offset of some tensor exceeds 32 bits, or why none does."""
    for case in task.heldout:
        tensors = arguments(task, case).tensors.values()
        if any(tensor is not None and tensor.offset + tensor.span > LARGE_ELEMENTS for tensor in tensors):
            return case.id
    return "" if admits_large(task) else "- no tensor that the domain admits has 2³¹ elements"


def is_data(tensor: Tensor) -> bool:
    """Return whether a tensor holds numbers to compute with, and no indices."""
    return tensor.dtype.startswith(("float", "bfloat")) or tensor.dtype in ("int8", "uint8")


def is_offsets(name: str) -> bool:
    """Return whether an input of this name holds ascending offsets."""
    return name.startswith("cu_") or name.endswith("offsets")


def ragged(task: Task) -> list[TensorSpec]:
    """Return the inputs that hold lengths, counts or offsets of rows, some of which the domain lets be empty."""
    found = []
    for spec in task.inputs:
        if not isinstance(spec, TensorSpec) or spec.fill is None or spec.name in _NO_COUNTS:
            continue
        counts = spec.name.endswith(_COUNTS) or spec.name.startswith("num_") or is_offsets(spec.name)
        if counts and (spec.fill.kind == "custom" or declared_empty(task, spec)):
            found.append(spec)
    return found


def declared_empty(task: Task, spec: TensorSpec) -> bool:
    """Return whether a declared fill admits 0: integers from a number below 1, or parts that may be empty."""
    fill = spec.fill
    if fill is None or fill.kind not in ("integers", "offsets"):
        return False
    least = fill.arguments.get("low" if fill.kind == "integers" else "least")
    lowest: dict[str, Number] = {scalar.name: scalar.value for scalar in task.inputs if isinstance(scalar, ScalarSpec)}
    lowest.update({axis.name: axis.low for axis in task.axes})
    return not isinstance(least, Expression) or least.value(lowest) < 1


def always(task: Task) -> str:
    """The fault can occur in every task."""
    return ""


def if_shaped(task: Task) -> str:
    """Some output has to have a dimension."""
    outputs = [spec for spec in task.tensors if spec.mutable or spec in task.outputs]
    return "" if any(spec.shape for spec in outputs) else "every output is one number"


def if_unaligned(task: Task) -> str:
    """Look for a row that does not begin at a multiple of 16 bytes, in the cases and with the next size of any axis."""
    for case in task.cases:
        for axis in task.axes:
            for size in (int(case.values[axis.name]), axis.low + axis.multiple_of):
                changed = Case(case.id, case.split, case.kind, {**case.values, axis.name: size}, case.omit)
                tensors = arguments(task, changed).inputs if axis.admits(size) else ()
                if any(has_vectors(tensor) and _is_unaligned(tensor) for tensor in tensors):
                    return ""
    return "rows of all inputs that fill 16 bytes begin at multiples of 16 bytes"


def has_vectors(tensor: Tensor) -> bool:
    """Return whether a kernel may load 16 bytes of a row at once."""
    return bool(tensor.shape) and tensor.strides[-1] == 1 and tensor.shape[-1] * tensor.item_bytes >= VECTOR_BYTES


def _is_unaligned(tensor: Tensor) -> bool:
    return any(step * tensor.item_bytes % VECTOR_BYTES for step in (*tensor.strides[:-1], tensor.offset))


def if_strided(task: Task) -> str:
    """Strides have to be declared."""
    return "" if any(spec.strides for spec in task.tensors) else "no strides are declared"


def if_dtypes(task: Task) -> str:
    """A dtype has to be a choice of the case."""
    return "" if any(len(choices) > 1 for choices in task.dtypes.values()) else "every tensor has one dtype"


def if_ragged(task: Task) -> str:
    """Some rows have to be counted by inputs, and may be empty."""
    return "" if ragged(task) else "no input holds lengths, counts or offsets of rows that may be empty"


def if_hip(task: Task) -> str:
    """Lanes have to be visible to the kernel."""
    return "Triton has no lanes" if task.task_type.triton else ""
