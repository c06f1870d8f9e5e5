"""Product over listed blocks, in wide tiles without masks, in an order that reuses the cache.

The baseline's tile of 32 × 32 reads 16 operand elements for 256 multiply-adds and has too few rows for the matrix units
that work on shared memory (wgmma needs 64). A block of 16 is a step of one matrix instruction, and a loop of such steps
mostly waits.

Here a tile of 128 × 256 reads 3 elements for 256 multiply-adds, and one of 128 × 128 reads 4. `_tile` takes the one of
least cost for the shape: tiles of the busiest multiprocessor times multiply-adds and loads of a tile. A step has 64
values of the summed dimension with 16 bits, and 32 with float32, which is three products of TF32 on NVIDIA: a piece of
a block, or several blocks whose places are looked up together. Rows and columns beyond the end repeat others and are
not stored, so that only a last step that is not whole needs a mask. Programs go down eight tiles before they go to the
right, so that their operands are in the L2 cache together.

A load of operands waits for a block's number. Of the baseline's three stages, one is for the number and one for the
product, so that one load of operands is under way: its shared memory is that of one step. Here two are under way, and
four where M is up to 16 and the bytes of b are the bound. Half of the baseline's rows are padding then. Half as many
rows, for twice as many columns, need a quarter of its loads of a.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TOGETHER = 8
TILES = ((128, 256, 8), (128, 128, 8), (64, 128, 4), (64, 64, 4))  # rows, columns, warps
LINE_BYTES = 128  # of a step along the summed dimension
LOAD_COST = 48  # multiply-adds of a tile that take as long as one row or column of its operands


@triton.jit
def sum_over_listed_blocks(
    a_ptr,
    b_ptr,
    block_ids_ptr,
    out_ptr,
    M,
    N,
    K,
    a_stride,
    WHOLE_STEPS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    TOGETHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """K counts listed values alone. Programs are numbered down TOGETHER tiles before they go on to the right."""
    across = tl.cdiv(N, BLOCK_N)
    first = tl.program_id(0) // (TOGETHER * across) * TOGETHER
    height = tl.minimum(tl.cdiv(M, BLOCK_M) - first, TOGETHER)
    within = tl.program_id(0) % (TOGETHER * across)
    m = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    # Offsets have 32 bits, and need half the registers of pointers.
    a_offsets = (m % M)[:, None] * a_stride
    b_offsets = (n % N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if BLOCK_SIZE >= BLOCK_K:
            place = tl.load(block_ids_ptr + start // BLOCK_SIZE) * BLOCK_SIZE + start % BLOCK_SIZE + k
        else:
            listed = tl.minimum(start + k, K - 1)
            place = tl.load(block_ids_ptr + listed // BLOCK_SIZE) * BLOCK_SIZE + (start + k) % BLOCK_SIZE
        # Triton does not see it behind a remainder, and then loads a by single elements, which it does not pipeline.
        place = tl.max_contiguous(tl.multiple_of(place, 16), 16)
        if WHOLE_STEPS:
            a = tl.load(a_ptr + (a_offsets + place[None, :]))
            b = tl.load(b_ptr + (place[:, None] * N + b_offsets))
        else:
            a = tl.load(a_ptr + (a_offsets + place[None, :]), mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_ptr + (place[:, None] * N + b_offsets), mask=(k < K - start)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(out_ptr + (m[:, None] * N + n[None, :]), acc.to(out_ptr.dtype.element_ty), mask=inside)


def _tile(M, N, dtype, block_size):
    """Return the tile's rows, columns and depth, warps and stages."""
    units = 304 if torch.version.hip else 132  # of an MI300X and an H200
    # Every second stage waits for a block's number. Two or four steps of operands are under way, in up to 144 KiB of
    # shared memory. AMD devices have 64 KiB.
    few, many = (2, 2) if torch.version.hip else (5, 9)
    if M <= 16 and N <= 16:
        return 16, 16, 64, 4, few
    depth = LINE_BYTES // dtype.itemsize
    if M <= 16:
        strips = N // 64
        return 16, 64 if strips > 0.9 * units else 32, max(depth, block_size), 4, many
    # Where b is read by single elements, which pass through registers, or split, the widest tile has too few of them.
    tiles = TILES if N % 16 == 0 and dtype != torch.float32 else TILES[1:]
    rows, columns, warps = min(tiles, key=lambda tile: _cost(M, N, *tile[:2], units))
    return rows, columns, depth, warps, few


def _cost(M, N, rows, columns, units):
    tiles = triton.cdiv(M, rows) * triton.cdiv(N, columns)
    return triton.cdiv(tiles, units) * (rows * columns + LOAD_COST * (rows + columns))


def iv_dependent_matmul(a, b, block_ids, out):
    (M, N), block_size = out.shape, b.shape[1]
    K = block_ids.numel() * block_size
    rows, columns, depth, warps, stages = _tile(M, N, out.dtype, block_size)
    sum_over_listed_blocks[(triton.cdiv(M, rows) * triton.cdiv(N, columns),)](
        a,
        b,
        block_ids,
        out,
        M,
        N,
        K,
        a.stride(0),
        WHOLE_STEPS=K % depth == 0,
        BLOCK_SIZE=block_size,
        TOGETHER=TOGETHER,
        BLOCK_M=rows,
        BLOCK_N=columns,
        BLOCK_K=depth,
        num_warps=warps,
        num_stages=stages,
    )
