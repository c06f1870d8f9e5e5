"""Mean over the middle dimension by tiles of 16 KiB, or 8 of a row, whose sums are combined once, at the end.

The baseline sums 32 x 32 elements, across threads, after every step: 2 or 4 KiB on the way. Rows of a tile are 256
bytes here, or 128 where programs would be few. Tiles go to 32 KiB of shared memory, two of them ahead of the one that
is added up; four programs or more fit on a multiprocessor.

Rows that are no multiple of 16 values long cannot go there: single values of theirs are read into registers, of which a
tile of 16 KiB would leave room for two programs. Their tiles have 4 KiB, and rows of 128 bytes.
"""

import triton
import triton.language as tl

TILE_BYTES = 16384
ROW_TILE_BYTES = 8192
RAGGED_TILE_BYTES = 4096
ENOUGH_PROGRAMS = 512
"""About four for each multiprocessor of an H200."""


@triton.jit
def _mean_columns(x_ptr, y_ptr, row_stride, K, N, COLUMNS: tl.constexpr, SUMMANDS: tl.constexpr):
    strips = tl.cdiv(N, COLUMNS)
    m = (tl.program_id(0) // strips).to(tl.int64)
    n = tl.program_id(0) % strips * COLUMNS + tl.arange(0, COLUMNS)
    # A matrix has fewer than 2³¹ elements, gaps included, so that 32 bits hold places in it.
    x_ptr += m * K * row_stride
    sums = tl.zeros((SUMMANDS, COLUMNS), tl.float32)
    for start in tl.range(0, K, SUMMANDS, num_stages=3):
        k = start + tl.arange(0, SUMMANDS)
        places = k[:, None] * row_stride + n[None, :]
        x = tl.load(x_ptr + places, mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        sums += x.to(tl.float32)
    tl.store(y_ptr + m * N + n, (tl.sum(sums, axis=0) / K).to(y_ptr.dtype.element_ty), mask=n < N)


@triton.jit
def _mean_rows(x_ptr, y_ptr, M, K, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, K, WIDTH):
        k = start + tl.arange(0, WIDTH)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        sums += x.to(tl.float32)
    tl.store(y_ptr + m, (tl.sum(sums, axis=1) / K).to(y_ptr.dtype.element_ty), mask=m < M)


def mean(x, y):
    M, K, N = x.shape
    if N == 1 and x.stride(1) == 1:
        elements = ROW_TILE_BYTES // x.element_size()
        width = min(triton.next_power_of_2(K), elements)
        rows = elements // width
        _mean_rows[(triton.cdiv(M, rows),)](x, y, M, K, ROWS=rows, WIDTH=width)
        return
    ragged = N % 16 > 0
    elements = (RAGGED_TILE_BYTES if ragged else TILE_BYTES) // x.element_size()
    columns = min(triton.next_power_of_2(N), (128 if ragged else 256) // x.element_size())
    if M * triton.cdiv(N, columns) < ENOUGH_PROGRAMS:
        columns = max(1, columns // 2)
    summands = max(1, min(triton.next_power_of_2(K), elements // columns))
    _mean_columns[(M * triton.cdiv(N, columns),)](
        x, y, x.stride(1), K, N, COLUMNS=columns, SUMMANDS=summands, num_warps=4 if ragged else 8
    )
