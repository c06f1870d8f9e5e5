"""Floating-point operations that PyTorch is asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from arena.task.numerics.operations import count_flops

A, B = torch.ones(3, 4), torch.ones(4, 5)


@pytest.mark.parametrize(
    ("run", "flops"),
    [
        (lambda: A @ B, 2 * 3 * 4 * 5),
        (lambda: A * 2 + 1, 2 * 12),
        (lambda: A.sum(), 12),
        (lambda: A.T.reshape(12).view(2, 6), 12),
        (lambda: A[torch.tensor([1])], 4),
        (lambda: torch.softmax(A, 1), 5 * 12),
        (lambda: A.clone().mul_(2), 2 * 12),
        (lambda: torch.empty(9), 0),
    ],
)
def test_operations_are_counted(run: Callable[[], object], flops: float) -> None:
    assert count_flops(run) == flops
