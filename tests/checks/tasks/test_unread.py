"""Memory that no result depends on: what a task names is spoiled, and naming too much is found."""

from __future__ import annotations

import pytest
import torch

from arena.checks.tasks.unread import unread_item
from arena.judge.correctness.inputs import draw_secret, spoil
from arena.results.check import CheckItem, CheckOutcome
from arena.task.corpus.task_folder import load_task
from arena.task.definition import arguments
from arena.task.numerics.reference import Reference
from arena.task.rules import RuleLevel
from tests.checks.tasks.affine import Write
from tests.shipped import shipped_tasks

HALF = """import torch


def reference(x, gain, offset):
    kept = torch.arange(x.shape[0])[:, None] % 2 == 0
    return torch.where(kept, x, 0) * gain[:, None] + offset
{unread}"""
ODD_ROWS = """

def unread(x):
    return {"x": (torch.arange(x.shape[1]) % 2 == 1).expand(len(x), -1)}
"""
ALL_ROWS = """

def unread(x):
    return {"x": torch.ones(x.shape[:2], dtype=torch.bool)}
"""


def checked(write: Write, unread: str) -> CheckItem:
    task = load_task(write({"reference.py": HALF.format(unread=unread)}) / "triton2triton/suite/affine")
    generator = torch.Generator().manual_seed(0)
    return unread_item(task, Reference(task.reference_path), task.seen[:3], RuleLevel.STRICT, generator)


@pytest.mark.parametrize(
    ("unread", "outcome", "said"),
    [
        (ODD_ROWS, CheckOutcome.PASSED, ""),
        ("", CheckOutcome.PASSED, "of x either"),
        (ALL_ROWS, CheckOutcome.FAILED, "check_unread_needed"),
    ],
)
def test_what_is_unread_is_found(write: Write, unread: str, outcome: CheckOutcome, said: str) -> None:
    item = checked(write, unread)
    assert item.outcome is outcome
    assert said in item.detail
    assert bool(said) is bool(item.detail)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_some_of_it_is_spoiled_and_the_rest_is_as_drawn(write: Write, dtype: torch.dtype) -> None:
    task = load_task(write({"reference.py": HALF.format(unread=ODD_ROWS)}) / "triton2triton/suite/affine")
    case, reference = arguments(task, task.seen[3]), Reference(task.reference_path)
    before = torch.ones(2, 64, 64).to(dtype)
    drawn = {"x": before.clone()}
    spoil(drawn, case, reference, torch.Generator().manual_seed(0))
    spoiled = drawn["x"].float().isnan().all(-1)
    assert not spoiled[:, ::2].any()
    assert 16 < int(spoiled.sum()) < 48
    assert torch.equal(drawn["x"].float().nan_to_num(1.0), before.float())


@pytest.mark.parametrize("name", ["paged_prefix_prefill", "merge_attn_states", "batched_moe"])
def test_secret_inputs_hold_nan_where_nobody_reads(name: str) -> None:
    (task,) = (one for one in shipped_tasks().values() if one.id.endswith(f"/{name}"))
    reference = Reference(task.reference_path)
    smallest = sorted((arguments(task, case) for case in task.seen), key=lambda one: one.num_bytes)[:2]
    drawn = [draw_secret(case, reference, 1, "cpu") for case in smallest for _ in range(3)]
    assert any(values.isnan().any() for inputs in drawn for values in inputs.values() if values.is_floating_point())
