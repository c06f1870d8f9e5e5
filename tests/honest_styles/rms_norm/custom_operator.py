"""The launch is a custom operator of PyTorch's; host code asks for versions, limits and formats, and marks ranges."""

import contextlib
import copy
import math
import operator
import threading
from pathlib import Path

import numpy as np
import torch
import triton
import triton.language as tl
from torch import nn
from triton.language.extra import libdevice as ld

__version__ = "0.1"
ON_AMD = bool(torch.version.hip)
HAS_BF16 = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else True
HERE = Path(__file__).resolve().parent
LOCK = threading.Lock()
TO_TRITON = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}
EPS = {dtype: torch.finfo(dtype).eps for dtype in TO_TRITON}


@triton.jit
def _norm(x_ptr, w_ptr, y_ptr, stride: tl.constexpr, n: tl.constexpr, eps, BLOCK: tl.constexpr, OUT: tl.constexpr):
    tl.static_print("block", BLOCK)
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + row.to(tl.int64) * stride + offs, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(tl.where(mask, x * x, 0.0), axis=0) / n
    rstd = tl.math.rsqrt(mean_square + eps)
    w = tl.load(w_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row.to(tl.int64) * stride + offs, (x * rstd * w).to(OUT), mask=mask)


@torch.library.custom_op("styles::rms_norm_into", mutates_args={"y"})
def rms_norm_into(x: torch.Tensor, weight: torch.Tensor, eps: float, y: torch.Tensor) -> None:
    rows, n = x.size(0), x.size(1)
    block = triton.next_power_of_2(n)
    warps = int(np.clip(block // 256, 1, 8))
    options = {"waves_per_eu": 2} if ON_AMD else {}
    compiled = _norm[(rows,)](
        x, weight, y, x.stride(0), n, eps, BLOCK=block, OUT=TO_TRITON[y.dtype], num_warps=1 << (warps.bit_length() - 1), **options
    )
    del compiled


@rms_norm_into.register_fake
def _(x, weight, eps, y):
    return None


class RMSNorm(nn.Module):
    def __init__(self, eps: float):
        super().__init__()
        self.eps = eps

    def forward(self, x, weight, y):
        rms_norm_into(x, weight, self.eps, y)
        return y


def rms_norm(x, weight, eps, y):
    torch.cuda.nvtx.range_push("rms_norm")
    with LOCK, torch.no_grad(), contextlib.nullcontext():
        RMSNorm(float(eps)).eval()(x.detach(), weight, y)
    torch.cuda.nvtx.range_pop()
