"""Matrix product through tensor descriptors in wide tiles, in an order that reuses the cache.

The baseline's tile of 64 × 64 reads 8 operand elements for 256 multiply-adds, in steps of 32 along K. A tile of
128 × 256 reads 3 and one of 128 × 128 reads 4, in steps of 128 bytes: the widest row that the Tensor Memory Accelerator
swizzles. `_tile` takes the one of least cost for the shape: tiles of the busiest multiprocessor times multiply-adds and
loads of a tile. The baseline's order spreads the programs that run together down one column of tiles. Here programs go
down eight tiles before they go to the right, so that the operands of both directions are in the L2 cache together.

The baseline multiplies float32 without matrix units on NVIDIA, and reached 11 TFLOPS on an H200. Here it is three
products of TF32.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TOGETHER = 8
TILES = ((128, 256, 8), (128, 128, 8), (64, 128, 4), (64, 64, 4))  # rows, columns, warps
LINE_BYTES = 128  # of a step along K
LOAD_COST = 48  # multiply-adds of a tile that take as long as one row or column of its operands


@triton.jit
def _place(tiles_down, tiles_across, TOGETHER: tl.constexpr):
    """Return row and column of this program's tile: down TOGETHER tiles before it goes on to the right."""
    first = tl.program_id(0) // (TOGETHER * tiles_across) * TOGETHER
    height = tl.minimum(tiles_down - first, TOGETHER)
    within = tl.program_id(0) % (TOGETHER * tiles_across)
    return first + within % height, within // height


@triton.jit
def multiply_described(
    a_tiles,
    b_tiles,
    residual_tiles,
    out_tiles,
    M,
    N,
    K,
    TOGETHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    i, j = _place(tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), TOGETHER)
    row, column = i * BLOCK_M, j * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # The compiler must see one step: around the loop acc would be set to zeros, and no products overlap.
    for k in range(0, tl.maximum(K, 1), BLOCK_K):
        acc = tl.dot(a_tiles.load([row, k]), b_tiles.load([column, k]).T, acc, input_precision=PRECISION)
    acc += residual_tiles.load([row, column]).to(tl.float32)
    out_tiles.store([row, column], acc.to(out_tiles.dtype))


def _tile(M, N, dtype):
    """Return the tile's rows, columns and warps."""
    units = 304 if torch.version.hip else 132  # of an MI300X and an H200

    def cost(tile):
        rows, columns, _ = tile
        tiles = triton.cdiv(M, rows) * triton.cdiv(N, columns)
        return triton.cdiv(tiles, units) * (rows * columns + LOAD_COST * (rows + columns))

    # Where operands are split, the widest tile has no registers left.
    return min(TILES[1:] if dtype == torch.float32 else TILES, key=cost)


def descriptor_store_gemm(a, b, residual, out):
    (M, K), N = a.shape, b.shape[0]
    rows, columns, warps = _tile(M, N, a.dtype)
    depth = LINE_BYTES // a.element_size()
    multiply_described[(triton.cdiv(M, rows) * triton.cdiv(N, columns),)](
        TensorDescriptor.from_tensor(a, [rows, depth]),
        TensorDescriptor.from_tensor(b, [columns, depth]),
        TensorDescriptor.from_tensor(residual, [rows, columns]),
        TensorDescriptor.from_tensor(out, [rows, columns]),
        M,
        N,
        K,
        TOGETHER=TOGETHER,
        BLOCK_M=rows,
        BLOCK_N=columns,
        BLOCK_K=depth,
        num_warps=warps,
        # Three stages of up to 48 KiB fit an H200's shared memory. On AMD two are one buffer in 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
