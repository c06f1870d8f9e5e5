"""AWQ weights against numbers worked out one by one."""

from __future__ import annotations

import numpy as np
import torch

from arena.semantics.packed import AWQ_ORDER, awq_weight


def _packed(codes: np.ndarray) -> torch.Tensor:
    """Eight neighbouring codes of a row to an int32, in the order of AWQ checkpoints."""
    rows, columns = codes.shape
    words = np.zeros((rows, columns // 8), np.int64)
    for field, value in enumerate(AWQ_ORDER):
        words |= codes[:, value::8].astype(np.int64) << (4 * field)
    return torch.tensor(words).to(torch.int32)


def test_an_awq_weight_takes_scale_and_zero_of_its_group_and_column() -> None:
    generator = np.random.default_rng(5)
    codes, zeros = generator.integers(0, 16, (6, 16)), generator.integers(0, 16, (2, 16))
    scales = generator.normal(size=(2, 16))
    weight = awq_weight(_packed(codes), torch.tensor(scales), _packed(zeros))
    assert weight.dtype == torch.float64 and weight.shape == (6, 16)
    for k in range(6):
        for n in range(16):
            assert weight[k, n] == (codes[k, n] - zeros[k // 3, n]) * scales[k // 3, n]
