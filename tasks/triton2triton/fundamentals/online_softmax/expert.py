"""Softmax that reads a row once where it fits into registers, several short rows a program; else wide online tiles."""

import torch
import triton
import triton.language as tl

LARGEST_TILE = 32768
TILE_ELEMENTS = 2048
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax_tile(
    x_ptr, scale, y_ptr, peak_ptr, total_ptr, x_stride, rows, columns, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, WIDTH)
    inside = (row < rows)[:, None] & (i < columns)[None, :]
    offsets = row[:, None] * columns + i[None, :]
    x = tl.load(x_ptr + row[:, None] * x_stride + i[None, :], mask=inside, other=0.0).to(tl.float32)
    scores = tl.where((i < columns)[None, :], x * scale, -float("inf"))
    peak = tl.max(scores, axis=1)
    powers = tl.exp2((scores - peak[:, None]) * LOG2_E)
    total = tl.sum(powers, axis=1)
    y = powers * (1.0 / total)[:, None]
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(peak_ptr + row, peak, mask=row < rows)
    tl.store(total_ptr + row, total, mask=row < rows)


@triton.jit
def softmax_long(x_ptr, scale, y_ptr, peak_ptr, total_ptr, x_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    # One state per lane: the lanes meet once, at the end of the row.
    peaks = tl.full((WIDTH,), -float("inf"), tl.float32)
    totals = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        scores = tl.where(i < columns, x * scale, -float("inf"))
        higher = tl.maximum(peaks, scores)
        totals = totals * tl.exp2((peaks - higher) * LOG2_E) + tl.exp2((scores - higher) * LOG2_E)
        peaks = higher
    peak = tl.max(peaks, axis=0)
    total = tl.sum(totals * tl.exp2((peaks - peak) * LOG2_E), axis=0)
    inverse = 1.0 / total
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        y = tl.exp2((x * scale - peak) * LOG2_E) * inverse
        tl.store(y_ptr + row * columns + i, y.to(y_ptr.dtype.element_ty), mask=i < columns)
    tl.store(peak_ptr + row, peak)
    tl.store(total_ptr + row, total)


def online_softmax(x, scale, y, peak, total):
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    if width > LARGEST_TILE:
        softmax_long[(rows,)](x, scale, y, peak, total, x.stride(0), columns, WIDTH=4096, num_warps=8)
        return
    height = max(1, min(TILE_ELEMENTS // width, triton.next_power_of_2(rows)))
    num_warps = min(16 if torch.version.hip else 32, max(1, width * height // 512))
    softmax_tile[(triton.cdiv(rows, height),)](
        x, scale, y, peak, total, x.stride(0), rows, columns, ROWS=height, WIDTH=width, num_warps=num_warps
    )
