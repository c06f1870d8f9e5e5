"""Matrix product through tensor descriptors in wide tiles; float32 through pointers, with b transposed first.

The baseline's tile of 64 × 64 reads 8 operand elements for 256 multiply-adds, in steps of 32 along K. With 16 bits, a
tile of 128 × 256 reads 3 and one of 128 × 128 reads 4, in steps of 64, which are 128 bytes: the widest row that the
Tensor Memory Accelerator swizzles. `_tile` takes the one of least cost for the shape: tiles of the busiest
multiprocessor times multiply-adds and loads of a tile. The baseline's order spreads the programs that run together
down one column of tiles. Here programs go down eight tiles before they go to the right, so that the operands of both
directions are in the L2 cache together.

On NVIDIA, float32 has no matrix units at full precision. A thread takes four neighbouring rows of b at one k, which lie
K elements apart: in shared memory, those of a warp meet in a few of its banks. The baseline reached 11 TFLOPS on an
H200. chained_matmul's baseline, of equal tile and instructions, reached 39: its right operand has neighbouring columns.
So b is transposed by a launch of its own where more than one row of tiles reads it. That moves 34 MB at 2048 × 2048, a
twentieth of the product's time. AMD's matrix instructions take float32, and b as it is.
"""

import torch
import triton
import triton.language as tl

from triton.tools.tensor_descriptor import TensorDescriptor

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
TOGETHER = 8
TILES = ((128, 256, 8), (128, 128, 8), (64, 128, 4), (64, 64, 4))  # rows, columns, warps
DEPTH = 64
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
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a_tiles.load([row, k]), b_tiles.load([column, k]).T, acc)
    acc += residual_tiles.load([row, column]).to(tl.float32)
    out_tiles.store([row, column], acc.to(out_tiles.dtype))


@triton.jit
def transpose(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :], mask=mask)
    tl.store(out_ptr + j[:, None] * rows + i[None, :], x.trans(), mask=mask.trans())


@triton.jit
def multiply_float32(
    a_ptr,
    b_ptr,
    residual_ptr,
    out_ptr,
    a_stride,
    b_row_stride,
    b_column_stride,
    M,
    N,
    K,
    WHOLE_BLOCKS: tl.constexpr,
    TOGETHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Rows and columns beyond the end repeat others and are not stored."""
    i, j = _place(tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), TOGETHER)
    m = i * BLOCK_M + tl.arange(0, BLOCK_M)
    n = j * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_block = a_ptr + (m % M).to(tl.int64)[:, None] * a_stride + k[None, :]
    b_block = b_ptr + k[:, None] * b_row_stride + (n % N)[None, :] * b_column_stride
    step = BLOCK_K * b_row_stride
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if WHOLE_BLOCKS:
            a = tl.load(a_block)
            b = tl.load(b_block)
        else:
            a = tl.load(a_block, mask=(k < K - start)[None, :], other=0.0)
            b = tl.load(b_block, mask=(k < K - start)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_block += BLOCK_K
        b_block += step
    places = m[:, None] * N + n[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    acc += tl.load(residual_ptr + places, mask=inside, other=0.0)
    tl.store(out_ptr + places, acc, mask=inside)


def _tile(M, N):
    """Return the tile's rows, columns and warps, with 16 bits."""
    units = 304 if torch.version.hip else 132  # of an MI300X and an H200

    def cost(tile):
        rows, columns, _ = tile
        tiles = triton.cdiv(M, rows) * triton.cdiv(N, columns)
        return triton.cdiv(tiles, units) * (rows * columns + LOAD_COST * (rows + columns))

    return min(TILES, key=cost)


def _multiply_16_bits(a, b, residual, out):
    (M, K), N = a.shape, b.shape[0]
    rows, columns, warps = _tile(M, N)
    multiply_described[(triton.cdiv(M, rows) * triton.cdiv(N, columns),)](
        TensorDescriptor.from_tensor(a, [rows, DEPTH]),
        TensorDescriptor.from_tensor(b, [columns, DEPTH]),
        TensorDescriptor.from_tensor(residual, [rows, columns]),
        TensorDescriptor.from_tensor(out, [rows, columns]),
        M,
        N,
        K,
        TOGETHER=TOGETHER,
        BLOCK_M=rows,
        BLOCK_N=columns,
        BLOCK_K=DEPTH,
        num_warps=warps,
        # Three stages of up to 48 KiB fit an H200's shared memory. On AMD two are one buffer in 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )


def descriptor_store_gemm(a, b, residual, out):
    if a.dtype != torch.float32:
        _multiply_16_bits(a, b, residual, out)
        return
    (M, K), N = a.shape, b.shape[0]
    across = b.T
    if M > 64 and not torch.version.hip:
        across = torch.empty((K, N), dtype=b.dtype, device=b.device)
        transpose[(triton.cdiv(N, 64), triton.cdiv(K, 64))](b, across, N, K, BLOCK=64)
    rows, depth = 64 if M > 32 else 32, 32
    multiply_float32[(triton.cdiv(M, rows) * triton.cdiv(N, 64),)](
        a,
        across,
        residual,
        out,
        a.stride(0),
        *across.stride(),
        M,
        N,
        K,
        WHOLE_BLOCKS=K % depth == 0,
        TOGETHER=TOGETHER,
        BLOCK_M=rows,
        BLOCK_N=64,
        BLOCK_K=depth,
        num_warps=4,
        num_stages=2 if torch.version.hip else 3,
    )
