"""Rows of larger buffers, inputs that a stride of 0 repeats, and inputs that lie in another's memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from arena.errors import FileError
from arena.judge.correctness.buffers import Sets, lay_out
from arena.judge.correctness.inputs import draw_inputs, secret_generator
from arena.judge.correctness.verify import GOOD, check_canaries, check_inputs, check_outside
from arena.platforms.cpu.platform import CpuPlatform
from arena.platforms.toolchains.task_header import prototype
from arena.results.verdict import Status
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Arguments, Task, arguments
from arena.task.numerics.reference import Reference
from tests.task.corpus.folders import SEEN, write_task

TASK = """\
name: scale
summary: A made-up operator on tensors that are views.
entry: scale
axes:
  M: {doc: rows, domain: [1, 4096]}
  N: {doc: columns, domain: [8, 4096], multiple_of: 8}
  D: {doc: head size, values: [64, 128]}
  gap: {doc: elements between rows of x, domain: [0, 64], default: 0}
  start: {doc: elements before y, domain: [0, 64], default: 0}
  shared: {doc: whether value lies in latent, values: [0, 1], default: 0}
dtypes:
  dtype: [float32, float16]
inputs:
  x: {shape: [M, N], strides: [N + gap, 1], offset: gap // 2, dtype: $dtype, fill: normal}
  weight: {shape: [M, N], strides: [0, 1], dtype: $dtype, fill: normal}
  value: {shape: [M, 4], strides: [N if shared else 4, 1], offset: 3 * shared, dtype: $dtype, fill: normal,
    view_of: {input: latent, when: shared}}
  latent: {shape: [M, N], dtype: $dtype, fill: normal}
  bias: {shape: [N], dtype: float32, fill: normal, optional: true}
  alpha: {scalar: float32, value: 0.5}
  flag: {scalar: bool, value: false}
outputs:
  y: {shape: [M, N], offset: start, dtype: $dtype}
work: {flops: 2 * M * N}
"""
HELDOUT = """\
- {kind: edge, M: 3, N: 16, D: 64, dtype: float32, gap: 7, start: 5, shared: 1}
- {kind: structure, M: 3, N: 16, D: 64, dtype: float32}
- {kind: scale_down, M: 1, N: 16, D: 64, dtype: float32, gap: 9}
- {kind: alignment, M: 5, N: 16, D: 64, dtype: float32}
- {kind: dtype, M: 5, N: 16, D: 64, dtype: float16}
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(write_task(tmp_path, task=TASK, heldout=HELDOUT))


def filled(task: Task, index: int) -> tuple[Sets, dict[str, torch.Tensor]]:
    """Two sets of a held-out case, as a worker finds them before a call."""
    case = arguments(task, task.heldout[index])
    sets = Sets(CpuPlatform(), case, 2)
    drawn = draw_inputs(case, Reference(task.reference_path), 2, secret_generator("cpu"))
    sets.scatter_canaries()
    sets.write(drawn)
    sets.poison()
    return sets, drawn


def test_a_case_may_leave_out_an_axis_that_has_a_default(task: Task) -> None:
    strided, dense = task.heldout[:2]
    assert (strided.values["gap"], dense.values["gap"]) == (7, 0)
    assert "gap=7 start=5 shared=1" in strided.label
    assert "gap" not in dense.label
    assert task.axes[3].domain_text == "0 … 64; 0 where a case does not give it"


def test_every_view_reads_what_was_drawn_for_it(task: Task) -> None:
    for index in range(2):
        sets, drawn = filled(task, index)
        for name, values in drawn.items():
            assert torch.equal(sets.view(name), values), name
        inputs = {name: values[1] for name, values in drawn.items()}
        assert check_inputs(inputs, sets, 1) == GOOD


def test_a_slice_of_rows_has_canaries_before_and_between_its_rows(task: Task) -> None:
    case = arguments(task, task.heldout[0])
    sets = Sets(CpuPlatform(), case, 1)
    sets.scatter_canaries()
    before = sets.raw.clone()
    places, _ = lay_out(case, 1)
    assert places["x"].offset % 256 == 3 * 4, "the slice begins in the middle of the first row"
    sets.view("y").fill_(0.0)
    assert check_canaries(before, sets) == GOOD
    strays = {
        places["x"].offset - 4: "before the first argument",
        places["x"].offset + 16 * 4: "between the elements of x",
        places["y"].offset - 4: "bytes past the end of",
    }
    for stray, where in strays.items():
        sets.raw[stray] ^= 1
        found = check_canaries(before, sets)
        assert found.status is Status.OUT_OF_BOUNDS and where in found.detail
        sets.raw[stray] ^= 1


def test_a_stride_of_0_repeats_one_row_for_kernel_and_reference(task: Task) -> None:
    sets, drawn = filled(task, 0)
    weight = drawn["weight"]
    assert weight.shape == (2, 3, 16)
    assert torch.equal(weight[:, :1].expand_as(weight), weight)
    assert sets.view("weight").stride()[1:] == (0, 1)


def test_a_view_lies_in_the_memory_of_its_base_and_is_counted_once(task: Task) -> None:
    sets, drawn = filled(task, 0)
    assert torch.equal(drawn["value"], drawn["latent"][:, :, 3:7])
    assert sets.view("value").data_ptr() == sets.view("latent").data_ptr() + 3 * 4
    shared, own = (arguments(task, case) for case in task.heldout[:2])
    assert own.num_bytes - shared.num_bytes == 3 * 4 * 4
    assert own.tensors["value"] is not None and own.tensors["value"].base == ""
    assert not torch.equal(filled(task, 1)[1]["value"], drawn["latent"][:, :, 3:7])


def test_bytes_of_a_repeated_row_are_counted_once(task: Task) -> None:
    case = arguments(task, task.heldout[1])
    elements = 3 * 16 + 16 + 3 * 4 + 3 * 16 + 16 + 3 * 16
    assert case.num_bytes == 4 * elements


def test_a_size_that_only_places_a_tensor_is_no_argument_of_a_hip_function(task: Task) -> None:
    assert "int64_t D, int64_t gap, int64_t shared, hipStream_t" in prototype(task)
    message = Sets(CpuPlatform(), arguments(task, task.heldout[0]), 1).bind_message()
    assert message.axes == (3, 16, 64, 7, 1)
    assert message.extras["start"] == 5


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("y: {shape: [M, N], ", "y: {shape: [M, N], strides: [0, 1], ", "elements of y overlap"),
        ("strides: [N + gap, 1]", "strides: [N - gap, 1]", "elements of x overlap"),
        ("offset: gap // 2", "offset: 0 - gap", "the offset of x is -7; expected 0 or more"),
        ("offset: 3 * shared", "offset: 13 * shared", "has 48 elements; the view ends after 49"),
        (
            "latent: {shape: [M, N],",
            "latent: {shape: [M, N], strides: [2 * N, 1],",
            "which has gaps",
        ),
        ("input: latent", "input: flag", "`flag` is not an input tensor of the same dtype"),
        ("input: latent", "input: bias", "`bias` is not an input tensor of the same dtype"),
        ("when: shared", "when: sharing", "`sharing` is not an axis"),
        ("domain: [0, 64], default: 0", "domain: [1, 64], default: 0", "0 is outside the domain"),
    ],
)
def test_the_loader_refuses_what_no_memory_can_hold(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert TASK.count(old) >= 1
    with pytest.raises(FileError) as caught:
        load_task(write_task(tmp_path, task=TASK.replace(old, new, 1), heldout=HELDOUT))
    assert says in str(caught.value)


def test_seen_cases_have_the_default_too(task: Task) -> None:
    assert len(task.seen) == SEEN.count("- {")
    assert {case.values["shared"] for case in task.seen} == {0}
    assert isinstance(arguments(task, task.seen[0]), Arguments)


def test_around_one_set_of_many_are_its_offset_its_gaps_and_its_guards(task: Task) -> None:
    sets, _ = filled(task, 0)
    before, index = sets.outside(1), 1
    places, size = lay_out(sets.arguments, 2)
    x, y = (places[name].offset + index * places[name].pitch for name in "xy")
    row, gap, count = 16 * 4, 7 * 4, 3
    end = x + count * row + (count - 1) * gap
    for stray in (0, size - 1, x - 1, x + row, x + row + gap - 1, end, y - 1, y + count * row):
        sets.raw[stray] ^= 1
        assert check_outside(before, sets, index).status is Status.OUT_OF_BOUNDS, stray
        sets.raw[stray] ^= 1
    for element in (x, x + row - 1, x + row + gap, end - 1, y, y + count * row - 1):
        sets.raw[element] ^= 1
    assert check_outside(before, sets, index) == GOOD
