"""expect: wrong_result in seen-03. Sign of a scalar: the greatest x is taken for the greatest score, though the factor may be negative."""

import triton
import triton.language as tl

TILE = 256


@triton.jit
def online_row(x_ptr, scale, y_ptr, peak_ptr, total_ptr, x_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    peak = -float("inf")
    total = 0.0
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        scores = tl.where(i < columns, x * scale, -float("inf"))
        largest = tl.max(tl.where(i < columns, x, -float("inf")), axis=0)
        higher = tl.maximum(peak, largest * scale)
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(scores - higher), axis=0)
        peak = higher
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        y = tl.exp(x * scale - peak) / total
        tl.store(y_ptr + row * columns + i, y.to(y_ptr.dtype.element_ty), mask=i < columns)
    tl.store(peak_ptr + row, peak)
    tl.store(total_ptr + row, total)


def online_softmax(x, scale, y, peak, total):
    rows, columns = x.shape
    online_row[(rows,)](x, scale, y, peak, total, x.stride(0), columns, WIDTH=TILE)
