"""Shortcuts that passed once, each as the answers of a kernel that takes it: a few draws must refute every one.

The cases are as long as those in which the shortcut pays. A trial compares dozens of draws; these get twelve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from arena.checks.tasks.soundness import Draw
from arena.judge.correctness.inputs import draw_inputs
from arena.semantics.ragged import spans
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Arguments, Scalar, arguments
from arena.task.numerics.reference import Reference

DRAWS = 12
Tensors = dict[str, torch.Tensor]
Answer = Callable[[Draw], Tensors]


def draws(name: str, **values: Scalar | str) -> Iterator[Draw]:
    """Unlimited draws of a case of the task with these values."""
    task = load_task(TASKS / name)
    case = replace(task.seen[0], values={**task.seen[0].values, **values})
    worked_out: Arguments = arguments(task, case)
    reference, generator = Reference(task.reference_path), torch.Generator().manual_seed(11)
    while True:
        drawn = draw_inputs(worked_out, reference, 1, generator)
        yield Draw(reference, worked_out, {key: value[0] for key, value in drawn.items()})


def of_inputs(change: Callable[[Tensors], Tensors]) -> Answer:
    """The answer is that of the definition to changed inputs."""
    return lambda draw: Draw(draw.reference, draw.arguments, {**draw.inputs, **change(draw.inputs)}).answers


def from_every_nth(step: int) -> Answer:
    """The loss from one in `step` logits of each row, and from the target's own."""

    def answer(draw: Draw) -> Tensors:
        logits, target = draw.inputs["logits"].double(), draw.inputs["target"]
        smoothing, some = float(draw.arguments.names["smoothing"]), logits[:, ::step]
        normalizer = some.logsumexp(-1) + math.log(step)
        hard, uniform = normalizer - logits.gather(1, target[:, None])[:, 0], normalizer - some.mean(-1)
        return {"loss": ((1 - smoothing) * hard + smoothing * uniform).mean().to(draw.inputs["logits"].dtype)}

    return answer


def first_quarter(name: str) -> Answer:
    """Read the first quarter of the rows and take it for the others."""

    def change(inputs: Tensors) -> Tensors:
        rows = inputs[name]
        return {name: rows[torch.arange(len(rows)) % (len(rows) // 4)]}

    return of_inputs(change)


def in_int8(*names: str) -> Answer:
    def rounded(values: torch.Tensor) -> torch.Tensor:
        step = values.double().abs().amax(-1, keepdim=True) / 127
        return ((values.double() / step).round() * step).to(values.dtype)

    return of_inputs(lambda inputs: {name: rounded(inputs[name]) for name in names})


def without_maximum(draw: Draw) -> Tensors:
    """Exponentials of the scores themselves, in float32."""
    inputs, scale = draw.inputs, float(draw.arguments.case.values["sm_scale"])
    out = torch.zeros(*inputs["query"].shape[:2], inputs["value"].shape[2])
    group = inputs["query"].shape[1] // inputs["key"].shape[1]
    for begin, end in spans(inputs["cu_seqlens"]):
        key, value = (inputs[n][begin:end].float().repeat_interleave(group, 1) for n in ("key", "value"))
        scores = torch.einsum("qhd,khd->hqk", inputs["query"][begin:end].float(), key) * scale
        weights = torch.tril(scores.exp())
        out[begin:end] = torch.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdim=True), value)
    return {"out": out.to(inputs["query"].dtype)}


def decayed_tiles_left_out(draw: Draw) -> Tensors:
    """Nothing is added to tokens whose decay is below one two-thousandth."""
    inputs, size = draw.inputs, int(draw.arguments.names["chunk_size"])
    steps = torch.arange(inputs["query"].shape[1]) % size + 1
    far = (steps[:, None] * inputs["slopes"]) > 7.6
    query = inputs["query"].masked_fill(far[None, :, :, None], 0)
    return Draw(draw.reference, draw.arguments, {**inputs, "query": query}).answers


@pytest.mark.parametrize(
    ("task", "values", "answer"),
    [
        (
            "hip2hip/modules/cross_entropy_label_smoothing",
            {"M": 256, "C": 16384, "dtype": "bfloat16"},
            from_every_nth(16),
        ),
        (
            "hip2hip/modules/cross_entropy_label_smoothing",
            {"M": 256, "C": 16384, "dtype": "float32"},
            from_every_nth(8),
        ),
        (
            "hip2hip/modules/masked_language_model_head",
            {"M": 64, "V": 4096, "H": 64, "dtype": "bfloat16"},
            in_int8("x", "weight"),
        ),
        (
            "hip2hip/modules/masked_language_model_head",
            {"M": 64, "V": 4096, "H": 64, "dtype": "bfloat16"},
            first_quarter("weight"),
        ),
        ("triton2triton/attention/flash_prefill_attention", {"num_tokens": 192, "sm_scale": 0.2}, without_maximum),
        (
            "triton2triton/linear_attention/lightning_attn_none_diag",
            {"seq_len": 256, "num_heads": 8, "chunk_size": 256},
            decayed_tiles_left_out,
        ),
    ],
)
def test_a_shortcut_is_refuted(task: str, values: dict[str, Scalar | str], answer: Answer) -> None:
    some = draws(task, **values)
    assert not all(draw.accepts(answer(draw)) for draw, _ in zip(some, range(DRAWS), strict=False))
