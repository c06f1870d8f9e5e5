"""expect: launch_error. Limit of the grid: batches in y, which has 65,535 blocks at most."""

import triton
import triton.language as tl


@triton.jit
def add_up_rows(x_ptr, weight_ptr, y_ptr, row_stride, K, N, COLUMNS: tl.constexpr):
    b = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    y = tl.zeros((COLUMNS,), dtype=tl.float32)
    for k in range(K):
        x = tl.load(x_ptr + b * K + k).to(tl.float32)
        row = tl.load(weight_ptr + (b * K + k) * row_stride + n, mask=n < N, other=0.0)
        y += x * row.to(tl.float32)
    tl.store(y_ptr + b * N + n, y.to(y_ptr.dtype.element_ty), mask=n < N)


def batched_vecmat(x, weight, y):
    batch, K, N = weight.shape
    add_up_rows[(triton.cdiv(N, 32), batch)](x, weight, y, weight.stride(1), K, N, COLUMNS=32)
