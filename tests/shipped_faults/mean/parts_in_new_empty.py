"""expect: wrong_result in seen-01. Unfilled memory: partial sums are reduced over more parts than were written."""

import torch
import triton
import triton.language as tl


@triton.jit
def part_sum(x_ptr, parts_ptr, row_stride, K, N, PART: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    k = part * PART + tl.arange(0, PART)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        wanted = (k < K)[:, None] & (n < N)[None, :]
        x = tl.load(x_ptr + (m * K + k)[:, None] * row_stride + n[None, :], mask=wanted, other=0.0)
        tl.store(parts_ptr + (m * 64 + part) * N + n, tl.sum(x.to(tl.float32), axis=0), mask=n < N)


@triton.jit
def whole_mean(parts_ptr, y_ptr, K, N, PARTS: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        parts = tl.load(parts_ptr + (m * 64 + tl.arange(0, PARTS))[:, None] * N + n[None, :], mask=(n < N)[None, :])
        tl.store(y_ptr + m * N + n, (tl.sum(parts, axis=0) / K).to(y_ptr.dtype.element_ty), mask=n < N)


def mean(x, y):
    M, K, N = x.shape
    parts = x.new_empty((M, 64, N), dtype=torch.float32)
    part_sum[(M, triton.cdiv(K, 64))](x, parts, x.stride(1), K, N, PART=64, BLOCK_N=64)
    whole_mean[(M,)](parts, y, K, N, PARTS=64, BLOCK_N=64)
