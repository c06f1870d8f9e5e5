"""expect: wrong_result in seen-06. Row stride dropped: rows of x are taken to lie without a gap."""

import triton
import triton.language as tl


@triton.jit
def log_softmax_row(x_ptr, y_ptr, n_columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n_columns
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + start + columns, mask=inside, other=-float("inf")).to(tl.float32)
    shifted = x - tl.max(x, axis=0)
    y = shifted - tl.log(tl.sum(tl.exp(shifted), axis=0))
    tl.store(y_ptr + start + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def log_softmax(x, y):
    rows, columns = x.shape
    log_softmax_row[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
