"""Vector times matrix, batched: tiles of many rows, of which the next ones are on their way all the time.

The baseline loads one row of 32 columns at a time, so that a warp has 128 bytes on the way and waits for them. Here a
program of four warps loads whole cache lines of up to 16 KiB at once, and adds rows up across its threads at the end.
Small matrices are one tile, or a few side by side. A program that loads one tile, adds up, stores and ends leaves the
memory idle at both ends: it has several matrices, one after the other, and the tiles of the next ones are copied to
shared memory meanwhile. Long matrices are copied the same way, along the rows.
"""

import torch
import triton
import triton.language as tl

TILE_BYTES = 16384
LONG_TILE_BYTES = 8192
PROGRAMS = 528  # of the largest tiles: four on each multiprocessor of an H200
STAGES = tl.constexpr(2 if torch.version.hip else 4)  # AMD devices have 64 KiB of shared memory


@triton.jit
def _add_up_tiles(
    x_ptr, weight_ptr, y_ptr, row_stride, batch, K, N, together, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Add up the rows of one strip of `together` matrices. Each strip is one tile."""
    strips = tl.cdiv(N, COLUMNS)
    first = tl.program_id(0) // strips * together
    last = tl.minimum(first + together, batch)
    n = tl.program_id(0) % strips * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, ROWS)
    places = k[:, None] * row_stride + n[None, :]
    inside = (k < K)[:, None] & (n < N)[None, :]
    matrix = tl.cast(K, tl.int64) * row_stride
    x = tl.load(x_ptr + first * K + k, mask=k < K, other=0.0)
    for b in tl.range(first, last, num_stages=STAGES):
        weight = tl.load(weight_ptr + b * matrix + places, mask=inside, other=0.0)
        # Loads of so few bytes are not pipelined: the next vector's is begun before this one is used.
        next_x = tl.load(x_ptr + tl.minimum(b + 1, last - 1) * K + k, mask=k < K, other=0.0)
        sums = tl.sum(x.to(tl.float32)[:, None] * weight.to(tl.float32), axis=0)
        tl.store(y_ptr + b * N + n, sums.to(y_ptr.dtype.element_ty), mask=n < N)
        x = next_x


@triton.jit
def _add_up_rows(x_ptr, weight_ptr, y_ptr, row_stride, K, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Add up the rows of one strip of one matrix, one tile after the other."""
    strips = tl.cdiv(N, COLUMNS)
    b = (tl.program_id(0) // strips).to(tl.int64)
    n = tl.program_id(0) % strips * COLUMNS + tl.arange(0, COLUMNS)
    lanes = tl.arange(0, ROWS)
    # A matrix has fewer than 2³¹ elements, gaps included, so that 32 bits hold places in it.
    weight_ptr += b * K * row_stride
    x_ptr += b * K
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in tl.range(0, K, ROWS, num_stages=STAGES):
        k = start + lanes
        x = tl.load(x_ptr + k, mask=k < K, other=0.0)
        places = k[:, None] * row_stride + n[None, :]
        weight = tl.load(weight_ptr + places, mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        sums += x.to(tl.float32)[:, None] * weight.to(tl.float32)
    tl.store(y_ptr + b * N + n, tl.sum(sums, axis=0).to(y_ptr.dtype.element_ty), mask=n < N)


def batched_vecmat(x, weight, y):
    batch, K, N = weight.shape
    size = weight.element_size()
    rows = triton.next_power_of_2(K)
    row_stride = weight.stride(1)
    if rows * 128 > TILE_BYTES:
        # 256 bytes of a row are two cache lines; wider tiles would leave too few programs where matrices are few.
        columns = min(triton.next_power_of_2(N), 256 // size)
        rows = min(rows, LONG_TILE_BYTES // (columns * size))
        grid = (batch * triton.cdiv(N, columns),)
        _add_up_rows[grid](x, weight, y, row_stride, K, N, ROWS=rows, COLUMNS=columns)
        return
    columns = min(triton.next_power_of_2(N), TILE_BYTES // (rows * size))
    strips = triton.cdiv(N, columns)
    together = triton.cdiv(batch * strips * rows * columns * size, PROGRAMS * TILE_BYTES)
    grid = (triton.cdiv(batch, together) * strips,)
    # A tile of fewer bytes, of a small matrix, gives four warps too little to load.
    num_warps = 4 if rows * columns * size >= 4096 else 1
    _add_up_tiles[grid](
        x, weight, y, row_stride, batch, K, N, together, ROWS=rows, COLUMNS=columns, num_warps=num_warps
    )
