"""Softmax in three passes over a row, one program per row: the maximum, the sum, the quotients."""

import triton
import triton.language as tl

TILE = 512


@triton.jit
def softmax_row(x_ptr, y_ptr, row_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * row_stride
    y_ptr += row * columns
    lanes = tl.arange(0, WIDTH)
    peak = -float("inf")
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        peak = tl.maximum(peak, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(x - peak), axis=0)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + i, mask=i < columns).to(tl.float32)
        tl.store(y_ptr + i, (tl.exp(x - peak) / total).to(y_ptr.dtype.element_ty), mask=i < columns)


def naive_softmax(x, y):
    rows, columns = x.shape
    softmax_row[(rows,)](x, y, x.stride(0), columns, WIDTH=TILE)
