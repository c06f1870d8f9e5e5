"""Vector times matrix, batched: a tile of many rows of a matrix is loaded at once.

The baseline loads one row of 32 columns at a time, so that a warp has 128 bytes on the way and waits for them. Here a
program of four warps has 8 KiB on the way, whole cache lines of a row, and adds rows up across its threads at the end.
"""

import triton
import triton.language as tl

TILE_BYTES = 8192


@triton.jit
def _add_up_rows(x_ptr, weight_ptr, y_ptr, row_stride, K, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    strips = tl.cdiv(N, COLUMNS)
    b = (tl.program_id(0) // strips).to(tl.int64)
    n = tl.program_id(0) % strips * COLUMNS + tl.arange(0, COLUMNS)
    lanes = tl.arange(0, ROWS)
    inside = (n < N)[None, :]
    # A matrix has fewer than 2³¹ elements, gaps included, so that 32 bits hold places in it.
    weight_ptr += b * K * row_stride
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, K, ROWS):
        k = start + lanes
        x = tl.load(x_ptr + b * K + k, mask=k < K, other=0.0).to(tl.float32)
        places = k[:, None] * row_stride + n[None, :]
        weight = tl.load(weight_ptr + places, mask=(k < K)[:, None] & inside, other=0.0)
        sums += x[:, None] * weight.to(tl.float32)
    tl.store(y_ptr + b * N + n, tl.sum(sums, axis=0).to(y_ptr.dtype.element_ty), mask=n < N)


def batched_vecmat(x, weight, y):
    batch, K, N = weight.shape
    size = weight.element_size()
    # 256 bytes of a row are two cache lines; wider tiles would leave too few programs where matrices are few.
    columns = min(triton.next_power_of_2(N), 256 // size)
    rows = max(1, min(triton.next_power_of_2(K), TILE_BYTES // (columns * size)))
    _add_up_rows[(batch * triton.cdiv(N, columns),)](
        x,
        weight,
        y,
        weight.stride(1),
        K,
        N,
        ROWS=rows,
        COLUMNS=columns,
        # A tile of fewer bytes, of a small matrix, gives four warps too little to load.
        num_warps=4 if rows * columns * size >= 4096 else 1,
    )
