"""expect: wrong_result in seen-02. Row stride dropped: rows are taken to lie without a gap."""

import triton
import triton.language as tl


@triton.jit
def softmax_row(x_ptr, y_ptr, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, WIDTH)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=-float("inf")).to(tl.float32)
    grown = tl.exp(x - tl.max(x, axis=0))
    y = grown / tl.sum(grown, axis=0)
    tl.store(y_ptr + row * columns + i, y.to(y_ptr.dtype.element_ty), mask=i < columns)


def naive_softmax(x, y):
    rows, columns = x.shape
    softmax_row[(rows,)](x, y, columns, WIDTH=triton.next_power_of_2(columns))
