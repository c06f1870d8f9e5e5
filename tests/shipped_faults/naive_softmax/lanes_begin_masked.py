"""expect: wrong_result. NaN of -inf - -inf: peaks are kept by lane, and a lane may have met masked values alone."""

import triton
import triton.language as tl


@triton.jit
def softmax_row(x_ptr, y_ptr, row_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    peaks = tl.full((WIDTH,), -float("inf"), tl.float32)
    sums = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * row_stride + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(peaks, x)
        sums = sums * tl.exp(peaks - higher) + tl.exp(x - higher)
        peaks = higher
    peak = tl.max(peaks, axis=0)
    total = tl.sum(sums * tl.exp(peaks - peak), axis=0)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * row_stride + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * columns + i, (tl.exp(x - peak) / total).to(y_ptr.dtype.element_ty), mask=i < columns)


def naive_softmax(x, y):
    rows, columns = x.shape
    softmax_row[(rows,)](x, y, x.stride(0), columns, WIDTH=64)
