"""Back-to-back products in two launches of wide tiles, with h in memory between them.

The baseline has a program for 16 rows, which reads all of `down` and `up`: at M=4096 N=K=8192 rank=256, 256 programs
read 8 MB each, 2.1 GB together. Its products of 16 rows are too few for the matrix units that work on shared memory
(wgmma needs 64), and it has no other tile of N to compute meanwhile.

Here a first launch finds h and a second multiplies it with `up`. h is a small part of the bytes of x and out: 2 MB of
134 in that case. A first tile has 64 rows at least, and a second 128 × 128: the first reads 0.4 GB and the second 0.3.
`_first_tile` takes the one of least cost for the shape: tiles of the busiest multiprocessor times multiply-adds and
loads of a tile. Most multiprocessors have one first tile, so that small ones have six stages: 40 KiB of x are under
way. Rows and columns beyond the end repeat others and are not stored, so that only a last, partial block needs a mask.

Rows that are no multiple of 16 elements allow loads of one element only, which pass through registers. Operands of 16
bits are then copied with zeros at their ends, if there are many rows.

The baseline multiplies float32 without matrix units on NVIDIA; here it is three products of TF32, in steps of as many
bytes.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TILES = ((128, 256, 8, 3), (128, 128, 8, 4), (64, 128, 4, 6), (64, 64, 4, 6))  # rows, columns, warps, stages
VECTOR = 16
LINE_BYTES = 128  # of a step along the summed dimension
FEW = 256  # rows of an x whose operands are not worth a copy
LOAD_COST = 48  # multiply-adds of a tile that take as long as one row or column of its operands


@triton.jit
def copy_padded(x_ptr, out_ptr, x_stride, rows, columns, padded, BLOCK: tl.constexpr):
    """Copy one row, with zeros behind its end and below the last row."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < tl.where(row < rows, columns, 0), other=0.0)
    tl.store(out_ptr + row * padded + column, x, mask=column < padded)


@triton.jit
def product(
    left_ptr,
    right_ptr,
    out_ptr,
    left_stride,
    right_row_stride,
    right_column_stride,
    height,
    depth,
    width,
    SILU: tl.constexpr,
    WHOLE_BLOCKS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Programs go to the right first: they share the rows of x or h, and all share `down` or `up`."""
    across = tl.cdiv(width, COLUMNS)
    i = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    d = tl.arange(0, DEPTH)
    # Offsets have 32 bits, and need half the registers of pointers.
    left_offsets = (i % height)[:, None] * left_stride + d[None, :]
    right_offsets = d[:, None] * right_row_stride + (j % width)[None, :] * right_column_stride
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, depth, DEPTH):
        if WHOLE_BLOCKS:
            left = tl.load(left_ptr + left_offsets)
            right = tl.load(right_ptr + right_offsets)
        else:
            left = tl.load(left_ptr + left_offsets, mask=(d < depth - start)[None, :], other=0.0)
            right = tl.load(right_ptr + right_offsets, mask=(d < depth - start)[:, None], other=0.0)
        acc = tl.dot(left, right, acc, input_precision=PRECISION)
        left_offsets += DEPTH
        right_offsets += DEPTH * right_row_stride
    if SILU:
        acc = acc / (1.0 + tl.exp(-acc))
    inside = (i < height)[:, None] & (j < width)[None, :]
    tl.store(out_ptr + (i[:, None] * width + j[None, :]), acc.to(out_ptr.dtype.element_ty), mask=inside)


def _first_tile(M, rank, dtype):
    """Return the rows, columns and depth of a tile of h, warps and stages."""
    depth = LINE_BYTES // dtype.itemsize
    if rank <= 64:
        # An MI300X has more compute units, whose matrix instructions need no more than 32 rows.
        rows, depth = (32, 2 * depth) if torch.version.hip else (64, depth)
        return rows, max(16, triton.next_power_of_2(rank)), depth, 4, 6
    units = 304 if torch.version.hip else 132  # of an MI300X and an H200

    def cost(tile):
        rows, columns, *_ = tile
        tiles = triton.cdiv(M, rows) * triton.cdiv(rank, columns)
        return triton.cdiv(tiles, units) * (rows * columns + LOAD_COST * (rows + columns))

    # Where operands are split, the widest tile has no registers left.
    rows, columns, warps, stages = min(TILES[1:] if dtype == torch.float32 else TILES, key=cost)
    return rows, columns, depth, warps, stages


def _second_tile(M, N, rank, dtype):
    """Return the rows, columns and depth of a tile of out, warps and stages."""
    depth = min(LINE_BYTES // dtype.itemsize, max(16, triton.next_power_of_2(rank)))
    return (128, 128, depth, 8, 3) if min(M, N) > 64 else (64, 64, depth, 4, 3)


def _multiply(left, right, out, tile, silu):
    """Write left @ right to out, which is contiguous."""
    (height, depth), width = left.shape, out.shape[1]
    rows, columns, step, warps, stages = tile
    product[(triton.cdiv(height, rows) * triton.cdiv(width, columns),)](
        left,
        right,
        out,
        left.stride(0),
        *right.stride(),
        height,
        depth,
        width,
        SILU=silu,
        WHOLE_BLOCKS=depth % step == 0,
        ROWS=rows,
        COLUMNS=columns,
        DEPTH=step,
        num_warps=warps,
        # On AMD two stages are one buffer in 64 KiB of LDS.
        num_stages=2 if torch.version.hip else stages,
    )


def _padded(x, rows, columns):
    """Return x, or a copy with zeros to so many rows and columns."""
    if x.shape == (rows, columns) and x.stride(0) % VECTOR == 0:
        return x
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    copy_padded[(rows, triton.cdiv(columns, 2048))](x, out, x.stride(0), *x.shape, columns, BLOCK=2048)
    return out


def gemm_fusion(x, down, up, out):
    (M, K), (N, rank) = x.shape, up.shape
    many = M > FEW
    if many and x.element_size() == 2:
        K, rank = (triton.cdiv(size, VECTOR) * VECTOR for size in (K, rank))
        x, down, up = _padded(x, M, K), _padded(down, rank, K), _padded(up, N, rank)
    down, up = down.T, up.T
    h = torch.empty((M, rank), dtype=x.dtype, device=x.device)
    _multiply(x, down, h, _first_tile(M, rank, x.dtype), silu=True)
    _multiply(h, up, out, _second_tile(M, N, rank, x.dtype), silu=False)
