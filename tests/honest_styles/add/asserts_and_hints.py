"""Asserts and prints behind a constant, hints, a type alias, a logger, and a test of its own."""

from __future__ import annotations

import logging
from typing import TypeAlias

import torch
import triton
import triton.language as tl

logger = logging.getLogger(__name__)
Tensor: TypeAlias = torch.Tensor
DEBUG = tl.constexpr(False)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    tl.static_assert(BLOCK % 16 == 0, "BLOCK must be a multiple of 16")
    tl.assume(n > 0)
    start = tl.multiple_of(tl.program_id(0) * (BLOCK * STEPS), BLOCK)
    for step in tl.static_range(STEPS):
        offsets = start + step * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        y = tl.load(y_ptr + offsets, mask=offsets < n, other=0.0)
        if DEBUG:
            tl.device_print("x", x)
            tl.device_assert(x == x, "NaN")
        total = x.to(tl.float32) + y.to(tl.float32)
        tl.store(out_ptr + offsets, total.to(out_ptr.type.element_ty), mask=offsets < n)


def add(x: Tensor, y: Tensor, out: Tensor) -> None:
    n = out.numel()
    logger.debug("adding %d elements", n)
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"] * meta["STEPS"]),)
    add_kernel[grid](x, y, out, n, BLOCK=256, STEPS=4, num_warps=4)


if __name__ == "__main__":
    torch.manual_seed(0)
    a, b = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    c = torch.empty_like(a)
    add(a, b, c)
    torch.testing.assert_close(c, a + b)
    print("ok")
