"""Layout, poison and canaries of the buffer that judge and worker share."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from arena.judge.correctness.buffers import Sets, lay_out
from arena.judge.correctness.inputs import draw_inputs, secret_generator
from arena.judge.correctness.verify import GOOD, check_canaries, check_inputs, check_results, compared
from arena.platforms.cpu.platform import CpuPlatform
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Arguments, Task, arguments
from arena.task.numerics.dtypes import torch_dtype
from arena.task.numerics.reference import Reference

COUNT = 3


@pytest.fixture
def sets(case: Arguments) -> Sets:
    made = Sets(CpuPlatform(), case, COUNT)
    made.scatter_canaries()
    return made


def inputs(sets: Sets, task: Task) -> dict[str, torch.Tensor]:
    return draw_inputs(sets.arguments, Reference(task.reference_path), sets.count, secret_generator("cpu"))


def test_places_do_not_overlap(case: Arguments) -> None:
    places, size = lay_out(case, COUNT)
    spans = []
    for tensor in (*case.inputs, *case.outputs):
        place = places[tensor.name]
        spans += [(place.offset + k * place.pitch, tensor.span * tensor.item_bytes) for k in range(COUNT)]
    spans.sort()
    for (start, length), (following, _) in itertools.pairwise(spans):
        assert start + length + 256 <= following, "a guard of 256 bytes lies behind every tensor"
    assert spans[-1][0] + spans[-1][1] < size


def test_views_hold_what_was_written(sets: Sets, task: Task) -> None:
    values = inputs(sets, task)
    sets.write(values)
    assert torch.equal(sets.view("x"), values["x"])
    assert sets.view("x").shape == (COUNT, 4, 256)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_poison_is_seen_until_every_element_is_written(task: Task, dtype: str) -> None:
    case = next(arguments(task, one) for one in task.cases if one.values["dtype"] == dtype)
    sets = Sets(CpuPlatform(), case, COUNT)
    sets.poison()
    assert sets.view("y").isnan().all()
    sets.view("y")[0] = 1.0
    sets.view("y")[1] = 1.0
    assert sets.unwritten([0, 1]) == ""
    assert sets.unwritten([0, 1, 2]) == "y"
    sets.view("y")[2] = float("nan")
    assert sets.unwritten([2]) == "", "a NaN that was computed is not poison"


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bool"])
@pytest.mark.parametrize(("offset", "width"), [(0, 256), (1, 256), (0, 255), (3, 5)])
def test_sets_are_written_and_poisoned_alone_however_they_lie(task: Task, dtype: str, offset: int, width: int) -> None:
    """Whatever the words are in which memory is written: 8 bytes at once, or as few as an element has."""
    case = arguments(task, task.seen[0])
    changed = {
        name: replace(tensor, dtype=dtype, offset=offset, shape=(4, width), strides=(width, 1))
        for name in ("x", "y")
        if (tensor := case.tensors[name]) is not None
    }
    sets = Sets(CpuPlatform(), replace(case, tensors={**case.tensors, **changed}), COUNT)
    sets.scatter_canaries()
    around = [sets.outside(index) for index in range(COUNT)]
    values = torch.randint(0, 2, (COUNT, 4, width)).to(torch_dtype(dtype))
    sets.write({"x": values})
    sets.poison()
    assert torch.equal(sets.view("x"), values)
    assert all(bool(sets.held_poison("y", index).all()) for index in range(COUNT))
    sets.view("y").fill_(1)
    sets.poison(slice(1, 2))
    assert [bool(sets.held_poison("y", index).any()) for index in range(COUNT)] == [False, True, False]
    sets.write({"x": ~values if dtype == "bool" else -values - 1}, slice(2, 3))
    assert torch.equal(sets.view("x")[:2], values[:2])
    assert not bool((sets.view("x")[2] == values[2]).any())
    assert all(torch.equal(before, sets.outside(index)) for index, before in enumerate(around))


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_what_is_divided_between_rows_is_seen(task: Task, dtype: str, renewed: bool) -> None:
    """A quiet NaN keeps its bits through arithmetic: padding that is divided in place would look untouched."""
    case = arguments(task, task.seen[0])
    tensor = case.tensors["y"]
    assert tensor is not None
    padded = replace(tensor, dtype=dtype, offset=3, shape=(4, 255), strides=(300, 1))
    sets = Sets(CpuPlatform(), replace(case, tensors={**case.tensors, "y": padded}), COUNT)
    sets.scatter_canaries()
    if renewed:
        sets.renew_canaries()
    before = sets.raw.clone()
    gaps = torch.as_strided(sets.view("y")[0], (3, 45), (300, 1), sets.view("y")[0].storage_offset() + 255)
    assert bool(gaps.isnan().all())
    gaps.copy_((gaps.float() if dtype == "bfloat16" else gaps) / 0.7)
    assert check_canaries(before, sets).status is Status.OUT_OF_BOUNDS
    words = {2: torch.int16, 4: torch.int32, 8: torch.int64}[gaps.element_size()]
    assert int((sets.raw.view(words) != before.view(words)).sum()) == gaps.numel(), "each of them"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool"])
@pytest.mark.parametrize(("offset", "pitch"), [(0, 255), (1, 255), (3, 256), (0, 261)])
def test_canaries_are_renewed_around_all_sets(task: Task, dtype: str, offset: int, pitch: int) -> None:
    """Whether or not an element begins or ends in the middle of one; what is written afterwards is as it was."""
    case = arguments(task, task.seen[0])
    changed = {
        name: replace(tensor, dtype=dtype, offset=offset, shape=(4, 255), strides=(pitch, 1))
        for name in ("x", "y")
        if (tensor := case.tensors[name]) is not None
    }
    sets = Sets(CpuPlatform(), replace(case, tensors={**case.tensors, **changed}), COUNT)
    sets.raw.zero_()
    sets.renew_canaries()
    values = torch.randint(0, 2, (COUNT, 4, 255)).to(torch_dtype(dtype))
    sets.write({"x": values})
    assert torch.equal(sets.view("x"), values)
    for index in range(COUNT):
        sets.view("y")[index].zero_()
        elements = 2 * values[0].numel() * values.element_size() if pitch > 255 else 0
        assert int((sets.outside(index) == 0).sum()) == elements, "every byte beside those among gaps is a canary's"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool"])
@pytest.mark.parametrize("first", [0, 1])
def test_values_may_be_part_of_something_larger(task: Task, dtype: str, first: int) -> None:
    """As `make_inputs` may return them: a single draw has no gap, but begins or would go on between words."""
    case = arguments(task, task.seen[0])
    x = case.tensors["x"]
    assert x is not None
    changed = replace(x, dtype=dtype, shape=(8,), strides=(1,))
    sets = Sets(CpuPlatform(), replace(case, tensors={**case.tensors, "x": changed}), 1)
    whole = torch.tensor([[1, 0, 1, 1, 0, 0, 1, 0, 1]]).to(torch_dtype(dtype))
    sets.write({"x": whole[:, first : first + 8]})
    assert torch.equal(sets.view("x"), whole[:, first : first + 8])


def test_poison_changes_every_time(sets: Sets) -> None:
    seen = set()
    for _ in range(8):
        sets.poison()
        seen.add(int(sets.view("y").view(torch.int32)[0, 0, 0]))
    assert len(seen) > 4


def test_a_constant_of_one_byte_is_no_poison() -> None:
    """One byte for a whole output was right by chance, once in 256 calls."""
    task = load_task(TASKS / "triton2triton/quantization/per_token_quant_int8")
    one = replace(task.heldout[0], values={**task.heldout[0].values, "hidden": 64})
    sets = Sets(CpuPlatform(), arguments(task, one), 1)
    said = []
    for _ in range(2000):
        sets.poison()
        assert sets.unwritten([0]) == "q"
        for name in ("q", "scales", "sums"):
            sets.view(name).fill_(1)
        said.append(sets.unwritten([0]))
    assert set(said) == {""}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float8_e5m2"])
def test_a_constant_of_few_bytes_is_no_poison(task: Task, dtype: str) -> None:
    """One item for a whole output of int16 was right by chance, once in 65536 calls."""
    case = arguments(task, task.seen[0])
    y = case.tensors["y"]
    assert y is not None
    sets = Sets(CpuPlatform(), replace(case, tensors={**case.tensors, "y": replace(y, dtype=dtype)}), 2)
    sets.poison()
    assert sets.unwritten([0, 1]) == "y"
    outputs = sets.view("y")
    outputs.copy_(outputs[0, 0, 0].clone().expand_as(outputs))
    assert sets.unwritten([0, 1]) == ""


@pytest.mark.parametrize("dtype", ["int8", "int32", "float8_e5m2"])
def test_a_set_without_room_is_unwritten_only_throughout(task: Task, dtype: str) -> None:
    """However alike it begins: a few elements tell most sets, and all are asked where these hold poison."""
    values = {**task.seen[0].values, "M": 40, "N": 300}
    case = arguments(task, replace(task.seen[0], values=values))
    y = case.tensors["y"]
    assert y is not None
    sets = Sets(CpuPlatform(), replace(case, tensors={**case.tensors, "y": replace(y, dtype=dtype)}), COUNT)
    sets.poison()
    assert sets.unwritten([1]) == "y"
    for index in range(COUNT):
        last = sets.view("y").view(torch.int32 if dtype == "int32" else torch.int8)[index, -1, -1]
        last.copy_(last + 1)
        assert sets.unwritten([index]) == ""
        assert sets.unwritten(range(COUNT)) == ("y" if index + 1 < COUNT else "")


@pytest.mark.parametrize("columns", [5, 24])
@pytest.mark.parametrize("computed", [0.0, torch.nan])
def test_a_single_unwritten_element_is_seen(task: Task, columns: int, computed: float) -> None:
    """Also where a kernel computes NaN."""
    values = {**task.seen[0].values, "M": 3, "N": columns}
    sets = Sets(CpuPlatform(), arguments(task, replace(task.seen[0], values=values)), COUNT)
    sets.poison()
    held = sets.view("y")[1, 2, columns - 1].clone()
    sets.view("y").fill_(computed)
    assert sets.unwritten([0, 1, 2]) == ""
    sets.view("y")[1, 2, columns - 1] = held
    assert sets.unwritten([0, 1, 2]) == sets.unwritten([1]) == "y"
    assert sets.unwritten([0, 2]) == ""


def test_poison_of_a_bool_is_neither_true_nor_false(task: Task) -> None:
    case = arguments(task, task.seen[0])
    y = case.tensors["y"]
    assert y is not None
    sets = Sets(CpuPlatform(), replace(case, tensors={**case.tensors, "y": replace(y, dtype="bool")}), 1)
    for value in (True, False, True, False):
        sets.poison()
        sets.view("y").fill_(value)
        assert sets.unwritten([0]) == ""
        sets.poison()
        sets.view("y")[0, 0] = value
        assert sets.unwritten([0]) == "y", "a part that is not written is seen"


@pytest.mark.parametrize("name", ["fundamentals/small_dot", "normalization/fla_layernorm"])
def test_wiping_leaves_no_answer_behind(name: str) -> None:
    """Neither in outputs nor in what a call changes in place; other sets, and inputs, stay as they are."""
    task = load_task(TASKS / "triton2triton" / name)
    sets = Sets(CpuPlatform(), arguments(task, task.seen[0]), COUNT)
    sets.write(inputs(sets, task))
    for tensor in sets.arguments.outputs:
        sets.view(tensor.name).fill_(1.0)
    before = {
        tensor.name: sets.view(tensor.name).clone() for tensor in (*sets.arguments.inputs, *sets.arguments.outputs)
    }
    sets.wipe(slice(1, COUNT))
    answers = {spec.name for spec in compared(sets.arguments)}
    assert answers
    for tensor_name, old in before.items():
        now = sets.view(tensor_name)
        assert torch.equal(now[0], old[0])
        assert torch.equal(now[1:], old[1:]) is (tensor_name not in answers)
        assert tensor_name not in answers or not bool((now[1:] == old[1:]).any())


def single(task: Task) -> tuple[Sets, dict[str, torch.Tensor], torch.Tensor]:
    sets = Sets(CpuPlatform(), arguments(task, task.seen[0]), 1)
    sets.scatter_canaries()
    values = inputs(sets, task)
    sets.write(values)
    sets.poison()
    return sets, {name: value[0] for name, value in values.items()}, sets.raw.clone()


def test_a_right_answer_passes_every_look(task: Task) -> None:
    sets, own, before = single(task)
    reference = Reference(task.reference_path)
    sets.view("y")[0] = reference(sets.arguments, own)["y"].float()
    found = [check_canaries(before, sets), check_inputs(own, sets, 0)]
    found.append(check_results(sets.arguments, reference, own, sets, 0))
    assert [one.status for one in found] == [Status.PASSED] * 3


@pytest.mark.parametrize("name", ["x", "weight", "y"])
@pytest.mark.parametrize("side", ["before", "behind"])
def test_one_stray_byte_is_found(task: Task, name: str, side: str) -> None:
    sets, _, before = single(task)
    tensor = sets.arguments.tensors[name]
    assert tensor is not None
    behind = sets.offset(name) + tensor.span * tensor.item_bytes
    sets.raw[sets.offset(name) - 1 if side == "before" else behind] ^= 0xFF
    found = check_canaries(before, sets)
    assert found.status is Status.OUT_OF_BOUNDS
    assert "bytes outside" in found.detail


def test_one_flipped_bit_of_an_input_is_found(task: Task) -> None:
    sets, own, _ = single(task)
    sets.raw[sets.offset("weight") + 5] ^= 1
    assert check_inputs(own, sets, 0).status is Status.INPUT_MUTATED


def test_the_sign_of_a_zero_is_a_bit_of_an_input(task: Task) -> None:
    """As numbers the two zeros are equal, so that a candidate could mark what it has seen."""
    sets, own, _ = single(task)
    own["weight"][3] = 0.0
    sets.view("weight")[0, 3] = 0.0
    assert check_inputs(own, sets, 0) == GOOD
    sets.view("weight")[0, 3] = -0.0
    assert check_inputs(own, sets, 0).status is Status.INPUT_MUTATED


def test_one_wrong_element_is_found(task: Task) -> None:
    sets, own, _ = single(task)
    reference = Reference(task.reference_path)
    sets.view("y")[0] = reference(sets.arguments, own)["y"].float()
    sets.view("y")[0, 3, 17] += 0.01
    found = check_results(sets.arguments, reference, own, sets, 0)
    assert found.status is Status.WRONG_RESULT
    total = sets.view("y")[0].numel()
    assert found.detail.startswith(f"y: 1 of {total} elements wrong; worst at [3, 17]: got ")


def test_an_arena_is_used_where_the_sets_fit(case: Arguments) -> None:
    platform = CpuPlatform()
    size = lay_out(case, COUNT)[1]
    arena = platform.allocate(size)
    inside = Sets(platform, case, COUNT, arena)
    outside = Sets(platform, case, 2 * COUNT, arena)
    assert inside.bind_message().buffer.num_bytes == size
    assert outside.bind_message().buffer.num_bytes > size
    inside.close()
    assert arena.file is not None, "closing sets leaves the arena open"
