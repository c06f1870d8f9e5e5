"""TASK.md says where tensors lie: strides, offsets, and inputs that share memory."""

from __future__ import annotations

from arena.platforms.toolchains.task_header import passed_axes
from arena.runs.service.task_text import ArgumentView, argument_views
from arena.task.corpus.task_folder import TASKS, load_task


def views(name: str) -> dict[str, ArgumentView]:
    return {view.name: view for view in argument_views(load_task(TASKS / name))}


def test_a_slice_of_rows_has_strides_and_an_offset() -> None:
    found = views("triton2triton/fundamentals/rmsnorm_fwd")
    assert found["x"].strides == "[N + row_gap, 1], after row_gap // 2 elements of its memory"
    assert found["weight"].strides == "dense"


def test_an_input_in_the_memory_of_another_says_so() -> None:
    value = views("triton2triton/attention/flash_prefill_attention")["value"]
    assert value.about.endswith("a view of the memory of key where shared is not 0")
    assert value.strides.endswith("after 0 if shared else token_gap // 2 elements of its memory")


def test_a_hip_prototype_has_strides_but_no_offsets() -> None:
    sliced = load_task(TASKS / "hip2hip/modules/gather_rows")
    assert [axis.name for axis in passed_axes(sliced)] == ["R", "D", "K", "row_gap"]
    shifted = load_task(TASKS / "hip2hip/modules/gelu")
    assert [axis.name for axis in passed_axes(shifted)] == ["M", "N"]
    assert views("hip2hip/modules/gelu")["x"].strides == "dense, after shift elements of its memory"
