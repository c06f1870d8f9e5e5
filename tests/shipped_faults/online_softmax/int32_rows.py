"""expect: launch_error. Row numbers stay int32, so that row times x_stride overflows where M * (N + row_gap) exceeds 2^31."""

import triton
import triton.language as tl

TILE = 1024


@triton.jit
def online_row(x_ptr, scale, y_ptr, peak_ptr, total_ptr, x_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    # At most 2**29 elements.
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * columns
    lanes = tl.arange(0, WIDTH)
    peak = -float("inf")
    total = 0.0
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_row + i, mask=i < columns, other=0.0).to(tl.float32)
        scores = tl.where(i < columns, x * scale, -float("inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(scores - higher), axis=0)
        peak = higher
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_row + i, mask=i < columns, other=0.0).to(tl.float32)
        y = tl.exp(x * scale - peak) / total
        tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=i < columns)
    tl.store(peak_ptr + row, peak)
    tl.store(total_ptr + row, total)


def online_softmax(x, scale, y, peak, total):
    rows, columns = x.shape
    online_row[(rows,)](x, scale, y, peak, total, x.stride(0), columns, WIDTH=min(TILE, triton.next_power_of_2(columns)))
