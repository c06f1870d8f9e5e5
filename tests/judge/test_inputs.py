"""What is drawn for a case, and what is left out for who runs nothing."""

from __future__ import annotations

import pytest

from arena.judge import inputs
from arena.judge.inputs import draw_inputs, secret_generator
from arena.model.task import FLOATING, arguments
from arena.numerics.reference import Reference
from arena.taskfile.corpus import TASKS, load_task


def test_indices_are_drawn_and_data_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task(TASKS / "triton2triton/moe/expert_kernel")
    worked_out = arguments(task, task.seen[0])
    reference, generator = Reference(task.reference_path), secret_generator("cpu")
    everything = draw_inputs(worked_out, reference, 1, generator)
    assert set(everything) == {tensor.name for tensor in worked_out.inputs}
    needed = draw_inputs(worked_out, reference, 1, generator, data=False)
    left_out = {tensor.name for tensor in worked_out.inputs} - set(needed)
    assert left_out == {tensor.name for tensor in worked_out.inputs if tensor.dtype in FLOATING}
    monkeypatch.setattr(inputs, "_MOST_INDICES", 0)
    fewer = draw_inputs(worked_out, reference, 1, generator, data=False)
    assert set(fewer) < set(needed), "large tensors of integers that may be 0 are data, too"
