"""expect: wrong_result in heldout-17. Mask: lanes past the row count as 0 in its maximum, and all exponentials vanish."""

import triton
import triton.language as tl


@triton.jit
def log_softmax_row(x_ptr, y_ptr, x_stride, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * n_columns
    peaks = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
        peaks = tl.maximum(peaks, x)
    peak = tl.max(peaks, axis=0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + columns, mask=columns < n_columns, other=-float("inf")).to(tl.float32)
        sums += tl.exp(x - peak)
    log_total = peak + tl.log(tl.sum(sums, axis=0))
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(x_row + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_row + columns, (x - log_total).to(y_ptr.dtype.element_ty), mask=inside)


def log_softmax(x, y):
    rows, columns = x.shape
    log_softmax_row[(rows,)](x, y, x.stride(0), columns, BLOCK=1024)
