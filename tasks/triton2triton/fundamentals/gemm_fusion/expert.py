"""Back-to-back products in two launches of wide tiles, with h in memory between them.

The baseline has a program for 16 rows, which reads all of `down` and `up`: at M=4096 N=K=8192 rank=256, 256 programs
read 8 MB each, 2.1 GB together. Its products of 16 rows are too few for the matrix units that work on shared memory
(wgmma needs 64), and it has no other tile of N to compute meanwhile.

Here a first launch finds h and a second multiplies it with `up`. h is a small part of the bytes of x and out: 2 MB of
134 in that case. A first tile has 64 rows at least, and a second 128 × 128: the first reads 0.4 GB and the second 0.3.
`_first_tile` takes the one of least cost for the shape: tiles of the busiest multiprocessor times multiply-adds and
loads of a tile. Most multiprocessors have one first tile, so that small ones have six stages: 40 KiB of x are under
way. With a wide waist, though, small tiles wait for the L2 cache: 64 × 128 for each multiprocessor of an H200 read
0.4 GB in that case, 128 × 256 for four parts of K read 0.2 GB. Another launch adds these parts and activates them.
Rows and columns beyond the end repeat others and are not stored, so that only a last, partial block needs a mask.

Rows that are no multiple of 16 elements allow loads of one element only, which pass through registers. Operands of 16
bits are then copied with zeros at their ends, if there are many rows.

The baseline multiplies float32 without matrix units on NVIDIA; here it is three products of TF32, in steps of as many
bytes. The compiler splits both operands for them in registers, at every step, and moves the right one back to shared
memory. Where there are many rows, weights and h are therefore split into upper and lower bfloat16 before they are
multiplied. Three products serve as one: those of upper halves, and of upper and lower ones. x is used once, and split
in registers as the left operand. The second product has its halves side by side in rows, so that it is one of 16 bits.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TILES = ((128, 256, 8, 3), (128, 128, 8, 4), (64, 128, 4, 6), (64, 64, 4, 6))  # rows, columns, warps, stages
VECTOR = 16
LINE_BYTES = 128  # of a step along the summed dimension
FEW = 256  # rows of an x whose operands are not worth a copy
MANY = 1024  # rows of an x whose tiles of h are as wide as can be
LOAD_COST = 48  # multiply-adds of a tile that take as long as one row or column of its operands
SPLIT_FROM, SPLIT_RANK = 2048, 128  # least N and K, and least rank, of float32 whose operands are split before
SPLIT_TILE = 128
SPLIT_STEP = 32
SPLIT_ALIGNMENT = 64
UNITS = 304 if torch.version.hip else 132  # multiprocessors of an MI300X and an H200
LEAST_PART = 256  # of K


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
    part_length,
    SILU: tl.constexpr,
    WHOLE_BLOCKS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Programs go to the right first: they share the rows of x or h, and all share `down` or `up`.

    The second dimension of the grid has parts of the summed one, with a result each.
    """
    across = tl.cdiv(width, COLUMNS)
    i = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    d = tl.arange(0, DEPTH)
    begin = tl.program_id(1) * part_length
    # Offsets have 32 bits, and need half the registers of pointers.
    left_offsets = (i % height)[:, None] * left_stride + (begin + d)[None, :]
    right_offsets = (begin + d)[:, None] * right_row_stride + (j % width)[None, :] * right_column_stride
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    length = tl.minimum(part_length, depth - begin)
    # The compiler must see one step: around the loop acc would be set to zeros, and no products overlap.
    for start in range(0, tl.maximum(length, 1), DEPTH):
        if WHOLE_BLOCKS:
            left = tl.load(left_ptr + left_offsets)
            right = tl.load(right_ptr + right_offsets)
        else:
            left = tl.load(left_ptr + left_offsets, mask=(d < length - start)[None, :], other=0.0)
            right = tl.load(right_ptr + right_offsets, mask=(d < length - start)[:, None], other=0.0)
        acc = tl.dot(left, right, acc, input_precision=PRECISION)
        left_offsets += DEPTH
        right_offsets += DEPTH * right_row_stride
    if SILU:
        acc = acc / (1.0 + tl.exp(-acc))
    inside = (i < height)[:, None] & (j < width)[None, :]
    out_ptr += tl.program_id(1) * height * width
    tl.store(out_ptr + (i[:, None] * width + j[None, :]), acc.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def halves(x):
    """Return x rounded to bfloat16, and the rest. Rounded as integers: conversions of single values are slow."""
    bits = x.to(tl.int32, bitcast=True) + 0x8000
    upper = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    return upper, (x - (bits & -0x10000).to(tl.float32, bitcast=True)).to(tl.bfloat16)


@triton.jit
def split(x_ptr, out_ptr, columns, padded, BLOCK: tl.constexpr):
    """Write the upper, lower and upper half of one row side by side, each with zeros to its padded width."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    upper, lower = halves(tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0))
    out = out_ptr + row * 3 * padded + column
    tl.store(out, upper, mask=column < padded)
    tl.store(out + padded, lower, mask=column < padded)
    tl.store(out + 2 * padded, upper, mask=column < padded)


@triton.jit
def product_of_part(
    x_ptr,
    down_ptr,
    partial_ptr,
    x_stride,
    M,
    K,
    rank,
    padded,
    part_length,
    TILE: tl.constexpr,
    STEP: tl.constexpr,
):
    """Multiply one part of K of rows of x by the halves of `down`."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    r = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, STEP)
    x_offsets = (i % M)[:, None] * x_stride + k[None, :]
    down_offsets = (r % rank)[:, None] * (3 * padded) + k[None, :]
    acc = tl.zeros((TILE, TILE), tl.float32)
    begin = tl.program_id(2) * part_length
    for start in range(begin, tl.minimum(begin + part_length, K), STEP):
        x = tl.load(x_ptr + start + x_offsets, mask=(k < K - start)[None, :], other=0.0)
        down_upper = tl.load(down_ptr + start + down_offsets)
        down_lower = tl.load(down_ptr + padded + start + down_offsets)
        upper, lower = halves(x)
        step = tl.dot(upper, down_lower.T, tl.dot(lower, down_upper.T))
        # A sum of its own ends within the step: the next one overwrites the registers of the left operand.
        acc += tl.dot(upper, down_upper.T, step)
    inside = (i < M)[:, None] & (r < rank)[None, :]
    out = partial_ptr + tl.program_id(2) * M * rank
    tl.store(out + (i[:, None] * rank + r[None, :]), acc, mask=inside)


@triton.jit
def activate(
    partial_ptr,
    h_ptr,
    M,
    rank,
    padded,
    PARTS: tl.constexpr,
    SPLIT: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Add the parts of rows of h and write the activated sums, with SPLIT their lower, upper and upper halves."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    r = tl.arange(0, COLUMNS)
    inside = (i < M)[:, None] & (r < rank)[None, :]
    h = tl.zeros((ROWS, COLUMNS), tl.float32)
    for part in tl.static_range(PARTS):
        h += tl.load(partial_ptr + part * M * rank + (i[:, None] * rank + r[None, :]), mask=inside, other=0.0)
    h = h / (1.0 + tl.exp(-h))
    inside = (i < M)[:, None] & (r < padded)[None, :]
    if SPLIT:
        upper, lower = halves(h)
        out = h_ptr + (i[:, None] * (3 * padded) + r[None, :])
        tl.store(out, lower, mask=inside)
        tl.store(out + padded, upper, mask=inside)
        tl.store(out + 2 * padded, upper, mask=inside)
    else:
        tl.store(h_ptr + (i[:, None] * padded + r[None, :]), h.to(h_ptr.dtype.element_ty), mask=inside)


def _first_tile(M, rank, dtype):
    """Return the rows, columns and depth of a tile of h, warps and stages."""
    depth = LINE_BYTES // dtype.itemsize
    if rank <= 64:
        # An MI300X has more compute units, whose matrix instructions need no more than 32 rows.
        rows, depth = (32, 2 * depth) if torch.version.hip else (64, depth)
        return rows, max(16, triton.next_power_of_2(rank)), depth, 4, 6
    if dtype != torch.float32 and M >= MANY and not torch.version.hip:
        rows, columns, warps, stages = TILES[0 if rank > 128 else 1]
        return rows, columns, depth, warps, stages

    def cost(tile):
        rows, columns, *_ = tile
        tiles = triton.cdiv(M, rows) * triton.cdiv(rank, columns)
        return triton.cdiv(tiles, UNITS) * (rows * columns + LOAD_COST * (rows + columns))

    # Where operands are split, the widest tile has no registers left.
    rows, columns, warps, stages = min(TILES[1:] if dtype == torch.float32 else TILES, key=cost)
    return rows, columns, depth, warps, stages


def _second_tile(M, N, rank, dtype):
    """Return the rows, columns and depth of a tile of out, warps and stages."""
    depth = min(LINE_BYTES // dtype.itemsize, max(16, triton.next_power_of_2(rank)))
    return (128, 128, depth, 8, 3) if min(M, N) > 64 else (64, 64, depth, 4, 3)


def _parts_of(K, tiles, step):
    """Return how many parts of K, of whole steps, give every multiprocessor one tile, and their length."""
    parts = max(1, min(UNITS // tiles, K // LEAST_PART))
    length = triton.cdiv(K, parts * step) * step
    return triton.cdiv(K, length), length


def _activate(partial, h, split):
    """Write h, or the halves of h, from its parts."""
    (parts, M, rank), padded = partial.shape, h.shape[1] // (3 if split else 1)
    columns = triton.next_power_of_2(padded)
    activate[(triton.cdiv(M, 16),)](partial, h, M, rank, padded, PARTS=parts, SPLIT=split, ROWS=16, COLUMNS=columns)


def _multiply_in_parts(left, right, out, tile):
    """Write silu(left @ right) to out, in parts of the summed dimension where tiles are few."""
    (M, K), rank = left.shape, out.shape[1]
    parts, length = _parts_of(K, triton.cdiv(M, tile[0]) * triton.cdiv(rank, tile[1]), tile[2])
    if parts == 1 or M < MANY or torch.version.hip:
        _multiply(left, right, out, tile, silu=True)
        return
    partial = torch.empty((parts, M, rank), dtype=torch.float32, device=left.device)
    _multiply(left, right, partial, tile, silu=False, parts=parts, part_length=length)
    _activate(partial, out, split=False)


def _multiply(left, right, out, tile, silu, parts=1, part_length=None):
    """Write left @ right to out, or the product of each part to out[part]. out is contiguous."""
    (height, depth), width = left.shape, out.shape[-1]
    rows, columns, step, warps, stages = tile
    product[(triton.cdiv(height, rows) * triton.cdiv(width, columns), parts)](
        left,
        right,
        out,
        left.stride(0),
        *right.stride(),
        height,
        depth,
        width,
        part_length or depth,
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


def _split(x):
    """Return the halves of the rows of a matrix, and how many columns each has with zeros to whole steps."""
    rows, columns = x.shape
    padded = triton.cdiv(columns, SPLIT_ALIGNMENT) * SPLIT_ALIGNMENT
    out = torch.empty((rows, 3 * padded), dtype=torch.bfloat16, device=x.device)
    block = min(2048, triton.next_power_of_2(padded))
    split[(rows, triton.cdiv(padded, block))](x, out, columns, padded, BLOCK=block)
    return out, padded


def _multiply_split(x, down, up, out):
    (M, K), (N, rank) = x.shape, up.shape
    (down, padded), (up, padded_rank) = _split(down), _split(up)
    rows, columns = triton.cdiv(M, SPLIT_TILE), triton.cdiv(rank, SPLIT_TILE)
    parts, part_length = _parts_of(K, rows * columns, SPLIT_STEP)
    partial = torch.empty((parts, M, rank), dtype=x.dtype, device=x.device)
    product_of_part[(rows, columns, parts)](
        x,
        down,
        partial,
        x.stride(0),
        M,
        K,
        rank,
        padded,
        part_length,
        TILE=SPLIT_TILE,
        STEP=SPLIT_STEP,
        num_warps=8,
        num_stages=4,  # of 32 KiB
    )
    h = torch.empty((M, 3 * padded_rank), dtype=torch.bfloat16, device=x.device)
    _activate(partial, h, split=True)
    _multiply(h, up.T, out, _second_tile(M, N, 3 * padded_rank, h.dtype), silu=False)


def gemm_fusion(x, down, up, out):
    (M, K), (N, rank) = x.shape, up.shape
    many = M > FEW
    long = min(N, K) >= SPLIT_FROM and rank >= SPLIT_RANK  # short sums would be off by too much
    if many and x.dtype == torch.float32 and long and not torch.version.hip:
        _multiply_split(x, down, up, out)
        return
    if many and x.element_size() == 2:
        K, rank = (triton.cdiv(size, VECTOR) * VECTOR for size in (K, rank))
        x, down, up = _padded(x, M, K), _padded(down, rank, K), _padded(up, N, rank)
    down, up = down.T, up.T
    h = torch.empty((M, rank), dtype=x.dtype, device=x.device)
    _multiply_in_parts(x, down, h, _first_tile(M, rank, x.dtype))
    _multiply(h, up, out, _second_tile(M, N, rank, x.dtype), silu=False)
