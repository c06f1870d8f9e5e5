"""Matrix product of microscaling operands, which are widened to bfloat16 once, before they are multiplied.

Elements of both formats times their powers of two are exact in bfloat16. The baseline widens the elements of a row in
every tile that reads them, in up to 56 tiles of the production sizes, and between the loads and the matrix units.

Here a first kernel writes each operand in bfloat16, which costs the memory traffic of two bytes an element. The product
that remains has operands that go from memory to the matrix units through shared memory alone. Its tiles are wide, and
programs go down eight tiles before they go to the right, so that their operands are in the L2 cache together. `_tile`
takes the tile of least cost for the shape: tiles of the busiest multiprocessor times multiply-adds and loads of a tile.
Up to 64 rows have narrow tiles and more steps on the way. Rows and columns beyond the end
repeat others and are not stored, so that only a last, partial step needs a mask.
"""

import torch
import triton
import triton.language as tl

BLOCK = 32  # elements that have a scale in common
BLOCKS = 128  # of a program that widens
TOGETHER = 8
TILES = ((128, 256, 8, 3), (128, 128, 8, 3), (64, 128, 4, 3), (64, 64, 4, 6))  # rows, columns, warps, stages
LOAD_COST = 48  # multiply-adds of a tile that take as long as one row or column of its operands


@triton.jit
def _widen_blocks(
    codes_ptr, scales_ptr, out_ptr, blocks, BITS: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr
):
    """Write the scaled elements of BLOCKS blocks. Rows are whole blocks, so blocks follow each other throughout."""
    block = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS)
    inside = (block < blocks)[:, None]
    byte = tl.arange(0, BLOCK * BITS // 8)
    codes = tl.load(codes_ptr + block[:, None] * (BLOCK * BITS // 8) + byte[None, :], mask=inside, other=0)
    exponents = tl.load(scales_ptr + block, mask=block < blocks, other=0).to(tl.int32)
    if BITS == 8:
        elements = codes.to(tl.float8e4nv, bitcast=True).to(tl.float32)
    else:
        pairs = tl.reshape(tl.join(codes & 15, codes >> 4), (BLOCKS, BLOCK)).to(tl.uint16)
        # Exponent and mantissa of an element are the lowest exponents and the first bit of float16, with 14 more bias.
        elements = ((pairs & 7) << 9 | (pairs & 8) << 12).to(tl.float16, bitcast=True).to(tl.float32)
        exponents += 14
    scaled = elements * (exponents << 23).to(tl.float32, bitcast=True)[:, None]
    tl.store(out_ptr + block[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], scaled.to(tl.bfloat16), mask=inside)


@triton.jit
def _multiply_tile(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    WHOLE_STEPS: tl.constexpr,
    TOGETHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Programs are numbered down TOGETHER tiles before they go on to the right."""
    across = tl.cdiv(N, BLOCK_N)
    first = tl.program_id(0) // (TOGETHER * across) * TOGETHER
    height = tl.minimum(tl.cdiv(M, BLOCK_M) - first, TOGETHER)
    within = tl.program_id(0) % (TOGETHER * across)
    rows = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    # Offsets have 32 bits, and need half the registers of pointers.
    a_offsets = (rows % M)[:, None] * K + k[None, :]
    b_offsets = (columns % N)[:, None] * K + k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # The compiler must see one step: around the loop acc would be set to zeros, and no products overlap.
    for start in range(0, tl.maximum(K, 1), BLOCK_K):
        if WHOLE_STEPS:
            a = tl.load(a_ptr + a_offsets)
            b = tl.load(b_ptr + b_offsets)
        else:
            a = tl.load(a_ptr + a_offsets, mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_ptr + b_offsets, mask=(k < K - start)[None, :], other=0.0)
        acc = tl.dot(a, b.T, acc)
        a_offsets += BLOCK_K
        b_offsets += BLOCK_K
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + (rows[:, None] * N + columns[None, :]), acc.to(out_ptr.dtype.element_ty), mask=inside)


def _widened(codes, scales):
    """Return the operand (rows, K) in bfloat16."""
    rows, blocks = scales.shape
    out = torch.empty((rows, blocks * BLOCK), dtype=torch.bfloat16, device=codes.device)
    _widen_blocks[(triton.cdiv(rows * blocks, BLOCKS),)](
        codes, scales, out, rows * blocks, BITS=codes.shape[1] * 8 // out.shape[1], BLOCK=BLOCK, BLOCKS=BLOCKS
    )
    return out


def _tile(M, N):
    """Return the tile's rows, columns and depth, warps and stages."""
    if M <= 64:
        return max(16, triton.next_power_of_2(M)), 64, 64, 4, 6
    units = 304 if torch.version.hip else 132  # of an MI300X and an H200
    # Where results are stored by single elements, the widest tile has no registers left.
    tiles = TILES if N % 16 == 0 else TILES[1:]
    rows, columns, warps, stages = min(tiles, key=lambda tile: _cost(M, N, *tile[:2], units))
    return rows, columns, 64, warps, stages


def _cost(M, N, rows, columns, units):
    tiles = triton.cdiv(M, rows) * triton.cdiv(N, columns)
    return triton.cdiv(tiles, units) * (rows * columns + LOAD_COST * (rows + columns))


def matmul_mxfp(a, b, a_scales, b_scales, out):
    M, N = out.shape
    a, b = _widened(a, a_scales), _widened(b, b_scales)
    K = a.shape[1]
    rows, columns, depth, warps, stages = _tile(M, N)
    _multiply_tile[(triton.cdiv(M, rows) * triton.cdiv(N, columns),)](
        a,
        b,
        out,
        M,
        N,
        K,
        WHOLE_STEPS=K % depth == 0,
        TOGETHER=TOGETHER,
        BLOCK_M=rows,
        BLOCK_N=columns,
        BLOCK_K=depth,
        num_warps=warps,
        # All stages take up to 144 KiB of an H200's shared memory. On AMD two are one buffer in 64 KiB of LDS.
        num_stages=2 if torch.version.hip else stages,
    )
