"""Chain of two products in the cheaper order, each in wide tiles without masks that reuse the cache.

The baseline multiplies from the left always. At M=8192 K=2048 N=4096 P=256 that is 155 GFLOP, and from the right 13.
Its tile of 64 × 64 reads 8 operand elements for 256 multiply-adds, in steps of 32 along the summed dimension, and masks
all loads.

Here the order is that of fewer operations. With 16 bits, a tile of 128 × 256 reads 3 elements for 256 multiply-adds and
one of 128 × 128 reads 4, in steps of 64. `_tile` takes the one of least cost for the shape: tiles of the busiest
multiprocessor times multiply-adds and loads of a tile. It takes 64 × 64 where tiles are too few to hide each other's
loads, so that five steps of these are under way. Rows and columns beyond the end repeat others and are not stored, so
that only a last, partial block needs a mask. Programs go down eight tiles before they go to the right, so that their
operands are in the L2 cache together. A result of up to 64 × 64 has 16 programs, in steps of 256, where its sums are
long.

Rows that are no multiple of 16 elements allow loads of one element only, which pass through registers. Operands of 16
bits are then copied with zeros at their ends, if many tiles read them; the result between the two products has whole
rows as well. The baseline multiplies float32 without matrix units on NVIDIA; here it is three products of TF32, in
steps of as many bytes. The compiler splits operands for them within the loop, in registers, between the loads and the
matrix units. Operands of long products that many tiles read are split before, into upper and lower bfloat16, 16 bits
together. Rows of the left one have their lower, upper and upper halves side by side, columns of the right one their
upper, lower and upper ones. A 16-bit product of three times the depth sums all but the products of two lower halves.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TOGETHER = 8
TILES = ((128, 256, 8, 3), (128, 128, 8, 3), (64, 128, 4, 3), (64, 64, 4, 6))  # rows, columns, warps, stages
LINE_BYTES = 128  # of a step along the summed dimension
SPLIT_FROM = 512  # least height and width of a product of float32 whose operands are split before
SPLIT_DEPTH = 2048  # its least depth: shorter sums round away less, and allow less
SPLIT_STEP = 64
SPLIT_TILES = 132  # multiprocessors of an H200
VECTOR = 16
FEW = 256  # the least dimension of a chain whose operands are worth a copy
LOAD_COST = 48  # multiply-adds of a tile that take as long as one row or column of its operands
MOST_BETWEEN = 1 << 29  # elements of the result between the products, as of all tensors


@triton.jit
def copy_padded(x_ptr, out_ptr, rows, columns, padded, BLOCK: tl.constexpr):
    """Copy one row, with zeros behind its end and below the last row."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < tl.where(row < rows, columns, 0), other=0.0)
    tl.store(out_ptr + row * padded + column, x, mask=column < padded)


@triton.jit
def product(
    left_ptr,
    right_ptr,
    out_ptr,
    height,
    depth,
    width,
    right_width,
    WHOLE_BLOCKS: tl.constexpr,
    TOGETHER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Programs are numbered down TOGETHER tiles before they go on to the right."""
    across = tl.cdiv(width, COLUMNS)
    first = tl.program_id(0) // (TOGETHER * across) * TOGETHER
    together = tl.minimum(tl.cdiv(height, ROWS) - first, TOGETHER)
    within = tl.program_id(0) % (TOGETHER * across)
    i = (first + within % together) * ROWS + tl.arange(0, ROWS)
    j = within // together * COLUMNS + tl.arange(0, COLUMNS)
    d = tl.arange(0, DEPTH)
    # Offsets have 32 bits, and need half the registers of pointers.
    left_offsets = (i % height)[:, None] * depth + d[None, :]
    right_offsets = d[:, None] * right_width + (j % right_width)[None, :]
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
        right_offsets += DEPTH * right_width
    inside = (i < height)[:, None] & (j < width)[None, :]
    tl.store(out_ptr + (i[:, None] * width + j[None, :]), acc.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def split(
    x_ptr,
    out_ptr,
    rows,
    columns,
    padded,
    row_stride,
    column_stride,
    LEFT: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write (rows, 3, padded) in bfloat16: with LEFT lower, upper and upper halves, else upper, lower and upper."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    x = tl.load(x_ptr + (i[:, None] * row_stride + j[None, :] * column_stride), mask=mask, other=0.0)
    upper = x.to(tl.bfloat16)
    lower = (x - upper.to(tl.float32)).to(tl.bfloat16)
    out = out_ptr + (i.to(tl.int64)[:, None] * (3 * padded) + j[None, :])
    inside = (i < rows)[:, None] & (j < padded)[None, :]
    tl.store(out, lower if LEFT else upper, mask=inside)
    tl.store(out + padded, upper if LEFT else lower, mask=inside)
    tl.store(out + 2 * padded, upper, mask=inside)


@triton.jit
def split_product(
    left_ptr,
    right_ptr,
    out_ptr,
    height,
    width,
    depth,
    TOGETHER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Multiply left (height, depth) by right (width, depth) of halves."""
    across = tl.cdiv(width, COLUMNS)
    first = tl.program_id(0) // (TOGETHER * across) * TOGETHER
    together = tl.minimum(tl.cdiv(height, ROWS) - first, TOGETHER)
    within = tl.program_id(0) % (TOGETHER * across)
    i = (first + within % together) * ROWS + tl.arange(0, ROWS)
    j = within // together * COLUMNS + tl.arange(0, COLUMNS)
    d = tl.arange(0, DEPTH)
    left_block = left_ptr + (i % height).to(tl.int64)[:, None] * depth + d[None, :]
    right_block = right_ptr + (j % width).to(tl.int64)[:, None] * depth + d[None, :]
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    # The compiler must see one step: around the loop acc would be set to zeros, and no products overlap.
    for _ in range(0, tl.maximum(depth, 1), DEPTH):
        acc = tl.dot(tl.load(left_block), tl.load(right_block).T, acc)
        left_block += DEPTH
        right_block += DEPTH
    inside = (i < height)[:, None] & (j < width)[None, :]
    tl.store(out_ptr + (i[:, None] * width + j[None, :]), acc, mask=inside)


def _tile(height, depth, width, dtype):
    """Return the tile's rows, columns and depth, warps and stages."""
    if height <= 16 and width <= 16:
        return 16, 16, 64, 4, 3
    if height * width <= 64 * 64 and depth >= 1024:
        # So few tiles take the time of their steps along the summed dimension.
        return 16, 16, 512 // dtype.itemsize, 4, 3
    units = 304 if torch.version.hip else 132  # of an MI300X and an H200
    # Where results are stored by single elements, or operands are split, the widest tile has no registers left.
    tiles = TILES if width % VECTOR == 0 and dtype != torch.float32 else TILES[1:]
    rows, columns, warps, stages = min(tiles, key=lambda tile: _cost(height, width, *tile[:2], units))
    return rows, columns, LINE_BYTES // dtype.itemsize, warps, stages


def _cost(height, width, rows, columns, units):
    tiles = triton.cdiv(height, rows) * triton.cdiv(width, columns)
    return triton.cdiv(tiles, units) * (rows * columns + LOAD_COST * (rows + columns))


def _multiply(left, right, out):
    (height, depth), width = left.shape, out.shape[1]
    large = min(height, width) >= SPLIT_FROM and depth >= SPLIT_DEPTH
    if out.dtype == torch.float32 and large and not torch.version.hip:
        return _multiply_split(left, right, out)
    rows, columns, step, warps, stages = _tile(height, depth, width, out.dtype)
    product[(triton.cdiv(height, rows) * triton.cdiv(width, columns),)](
        left,
        right,
        out,
        height,
        depth,
        width,
        right.shape[1],
        WHOLE_BLOCKS=depth % step == 0,
        TOGETHER=TOGETHER,
        ROWS=rows,
        COLUMNS=columns,
        DEPTH=step,
        num_warps=warps,
        # All stages take up to 144 KiB of an H200's shared memory. On AMD two are one buffer in 64 KiB of LDS.
        num_stages=2 if torch.version.hip else stages,
    )
    return out


def _split(x, rows, columns, row_stride, column_stride, left):
    padded = triton.cdiv(columns, SPLIT_STEP) * SPLIT_STEP
    out = torch.empty((rows, 3 * padded), dtype=torch.bfloat16, device=x.device)
    grid = (triton.cdiv(rows, 64), triton.cdiv(padded, 64))
    split[grid](x, out, rows, columns, padded, row_stride, column_stride, LEFT=left, ROWS=64, COLUMNS=64)
    return out


def _multiply_split(left, right, out):
    (height, depth), width = left.shape, out.shape[1]
    left = _split(left, height, depth, depth, 1, left=True)
    right = _split(right, width, depth, 1, right.shape[1], left=False)
    rows, columns, warps = (128, 128, 8) if height * width > SPLIT_TILES * 64 * 128 else (64, 128, 4)
    split_product[(triton.cdiv(height, rows) * triton.cdiv(width, columns),)](
        left,
        right,
        out,
        height,
        width,
        left.shape[1],
        TOGETHER=TOGETHER,
        ROWS=rows,
        COLUMNS=columns,
        DEPTH=SPLIT_STEP,
        num_warps=warps,
        num_stages=4,  # of 24 or 32 KiB
    )
    return out


def _padded(x, rows, columns):
    """Return x, or a copy with zeros to so many rows and columns."""
    if x.shape == (rows, columns):
        return x
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    copy_padded[(rows, triton.cdiv(columns, 2048))](x, out, *x.shape, columns, BLOCK=2048)
    return out


def chained_matmul(a, b, c, out):
    (M, K), (N, P) = a.shape, c.shape
    from_left = M * N * (K + P) <= K * P * (N + M) or K * P > MOST_BETWEEN
    if out.element_size() == 2 and min(M, K, N, P) > FEW:
        width, K, N = (triton.cdiv(size, VECTOR) * VECTOR for size in (P, K, N))
        a, b, c = _padded(a, M, K), _padded(b, K, N), _padded(c, N, width)
    if from_left:
        _multiply(_multiply(a, b, torch.empty((M, N), dtype=out.dtype, device=out.device)), c, out)
    else:
        _multiply(a, _multiply(b, c, torch.empty((K, c.shape[1]), dtype=out.dtype, device=out.device)), out)
