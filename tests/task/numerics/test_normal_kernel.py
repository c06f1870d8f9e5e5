"""Normal numbers of the GPU's kernel: their distribution, independence and key. Here Triton's interpreter runs it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest

DRAWS = 1 << 16
SCRIPT = """
import json, sys
import torch
from arena.task.numerics.normal_kernel import can_fill, fill_normal
dtype, draws, device = getattr(torch, sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def drawn(seed, mean=0.0, std=1.0, count=draws, into=None):
    out = torch.empty(count, dtype=dtype, device=device) if into is None else into
    assert can_fill(out)
    fill_normal(out, mean, std, torch.Generator(device).manual_seed(seed))
    return out.cpu()

one, other, moved = drawn(1), drawn(2), drawn(3, 2.0, 0.5)
guarded = torch.full((72,), 7.0, dtype=dtype, device=device)
drawn(5, into=guarded[32:64])
values = one.double()
edges = torch.linspace(-3, 3, 25, dtype=torch.float64)
print(json.dumps({
    "moments": [float((values**power).mean()) for power in (1, 2, 3, 4)],
    "below": [float((values < edge).double().mean()) for edge in edges],
    "neighbours": [float((values[by:] * values[:-by]).mean()) for by in (1, 2, 3, 4, 8)],
    "squares": [float((values[by:] ** 2 * values[:-by] ** 2).mean()) for by in (1, 2, 4, 8)],
    "distinct": len(one.unique()),
    "same_again": bool(torch.equal(one[:4096], drawn(1, count=4096))),
    "shared": float((one == other).double().mean()),
    "shifted": float(moved.double().mean()),
    "narrowed": float(moved.double().std()),
    "finite": bool(one.isfinite().all()),
    "edges_kept": bool((guarded[:32] == 7).all() and (guarded[64:] == 7).all() and (guarded[32:64] != 7).all()),
    "refused": [can_fill(torch.empty(shape, dtype=kind)) for shape, kind in
                ((9, torch.float32), (0, torch.float32), (8, torch.float64), (8, torch.int32), ((8, 8), torch.float32))]
        + [can_fill(torch.empty(8, 8).T)],
}))
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.slow(but=["float16"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_numbers_are_normal_and_independent(dtype: str, device: str) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1" if device == "cpu" else "0"}
    command = [sys.executable, "-c", SCRIPT, dtype, str(DRAWS), device]
    found = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=120).stdout)
    sigma = 5 / math.sqrt(DRAWS)
    for value, wanted, spread in zip(found["moments"], (0, 1, 0, 3), (1, 2**0.5, 15**0.5, 96**0.5), strict=True):
        assert abs(value - wanted) < spread * sigma
    for place, below in enumerate(found["below"]):
        assert abs(below - 0.5 * (1 + math.erf((-3 + place / 4) / 2**0.5))) < 0.5 * sigma
    assert all(abs(product) < sigma for product in found["neighbours"])
    assert all(abs(product - 1) < 8 * sigma for product in found["squares"]), "a radius serves one pair alone"
    assert found["distinct"] > (DRAWS // 2 if dtype == "float32" else 8192)
    assert found["same_again"], "the generator alone decides"
    assert found["shared"] < 0.01
    assert abs(found["shifted"] - 2) < 0.5 * sigma
    assert abs(found["narrowed"] - 0.5) < 0.5 * sigma
    assert found["finite"] and found["edges_kept"]
    assert found["refused"] == [False, False, False, False, True, False]
