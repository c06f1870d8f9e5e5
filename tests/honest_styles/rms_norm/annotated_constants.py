"""Annotated constants, do_not_specialize, helpers, a triton.jit call with options, and asserts on layout."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[t.Any]

MAX_FUSED: t.Final[int] = 65536
BLOCK_LIMIT = tl.constexpr(1024)


@dataclasses.dataclass
class Meta:
    block: int
    num_warps: int = 4
    options: dict[str, int] = dataclasses.field(default_factory=dict)


@triton.jit
def square_sum(x):
    return tl.sum(x * x, axis=0)


@triton.jit(do_not_specialize=["eps"])
def rms_norm_fwd(
    X, W, Y, stride, n_cols, eps, BLOCK_SIZE: tl.constexpr = BLOCK_LIMIT
):
    row = tl.program_id(0).to(tl.int64)
    X += row * stride
    Y += row * stride
    acc = 0.0
    for off in range(0, n_cols, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        acc += square_sum(x)
    rstd = tl.rsqrt(acc / n_cols + eps)
    for off in range(0, n_cols, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(W + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(Y + cols, (x * rstd * w).to(Y.dtype.element_ty), mask=mask)


def checked(function: Callable[..., None]) -> Callable[..., None]:
    def call(x: Tensor, *rest: t.Any) -> None:
        assert x.is_contiguous() and x.stride(-1) == 1
        if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise TypeError(f"unsupported dtype {x.dtype}")
        function(x, *rest)

    return call


@checked
def launch(x: Tensor, weight: Tensor, eps: float, y: Tensor) -> None:
    *_, n_cols = x.shape
    flat = x.view(-1, n_cols)
    meta = Meta(min(triton.next_power_of_2(n_cols), MAX_FUSED, 1024))
    match meta.block:
        case block if block >= 1024:
            meta.num_warps = 8
        case _:
            pass
    rms_norm_fwd[flat.shape[0],](flat, weight, y, flat.stride(0), n_cols, eps, meta.block, num_warps=meta.num_warps)


def rms_norm(x: Tensor, weight: Tensor, eps: float, y: Tensor) -> None:
    launch(x, weight, eps, y)
