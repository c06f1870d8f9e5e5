"""Shipped tasks have small cases in which memory lies as kernels often take for granted that it does not."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from arena.judge.selection import cpu_cases
from arena.task.corpus.corpora import load_corpus
from arena.task.definition import Arguments, Task, Tensor, TensorSpec, arguments

VECTOR = 64
"""elements: kernels look whether a row is whole vectors of at most so many"""
HARDLY_ANY = 8
"""elements of an output that are fewer than one vector of 16 bits"""
WHOLE = ["triton2triton/fundamentals/subtract x"]
"""whose rows are whole vectors by definition"""


def padded_rows(tensor: Tensor) -> Iterator[tuple[int, int]]:
    """Yield the elements of a row and the distance of two, of dimensions whose rows lie apart."""
    for dim in range(1, len(tensor.shape)):
        inner = math.prod(tensor.shape[dim:])
        if tensor.strides and tensor.strides[dim - 1] > inner and tensor.shape[dim - 1] > 1:
            yield inner, tensor.strides[dim - 1]


def seems_dense(tensor: Tensor | None) -> bool:
    """Return whether the distance of two rows is whole vectors, and their length is not."""
    rows = padded_rows(tensor) if tensor is not None else ()
    return any(distance % VECTOR == 0 and length % VECTOR and length > 16 for length, distance in rows)


def small(task: Task) -> list[Arguments]:
    return [arguments(task, case) for case in cpu_cases(task)]


def test_some_rows_are_whole_vectors_apart_and_are_none() -> None:
    """A kernel that takes the distance of two rows for their length reads or writes what lies between."""
    lacking = []
    for task in load_corpus():
        cases = small(task)
        for spec in (spec for spec in task.inputs if isinstance(spec, TensorSpec)):
            tensors = [case.tensors[spec.name] for case in cases]
            padded = any(tensor is not None and any(padded_rows(tensor)) for tensor in tensors)
            if padded and not any(map(seems_dense, tensors)):
                lacking.append(f"{task.id} {spec.name}")
    assert lacking == WHOLE


def test_some_tensor_is_smaller_than_what_precedes_its_first_whole_vector() -> None:
    """A kernel that computes single elements up to an aligned address goes past the end of a short one."""
    for task in load_corpus():
        if not any(axis.name == "shift" for axis in task.axes) or least_elements(task) >= HARDLY_ANY:
            continue
        of_16_bits = [case for case in small(task) if case.case.values["dtype"] != "float32"]
        shifted = [case for case in of_16_bits if int(case.names["shift"]) % HARDLY_ANY]
        assert any(elements(task, case) < HARDLY_ANY for case in shifted), task.id


def elements(task: Task, case: Arguments) -> int:
    tensor = case.tensors[task.outputs[0].name]
    assert tensor is not None
    return tensor.numel


def least_elements(task: Task) -> int:
    return min(elements(task, case) for case in small(task))


def test_some_sizes_occur_in_two_layouts() -> None:
    """A kernel that remembers strides by shape and dtype reads the second one with those of the first."""
    for task in load_corpus():
        gaps = {axis.name for axis in task.axes if axis.default == 0 and axis.name.endswith("_gap")}
        layouts: dict[object, set[object]] = defaultdict(set)
        for case in cpu_cases(task):
            sizes = frozenset((name, value) for name, value in case.values.items() if name not in gaps)
            layouts[sizes, case.omit].add(tuple(case.values[name] for name in sorted(gaps)))
        assert not gaps or max(map(len, layouts.values())) > 1, task.id
