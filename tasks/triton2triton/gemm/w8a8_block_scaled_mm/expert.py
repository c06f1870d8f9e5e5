"""Block-scaled fp8 product without masks in its loop: tiles of 64 x 128, of which an H200's multiprocessor holds three.

The product of a block is scaled before the next is added, so that matrix units wait for it. Three small programs take
turns there; one of 128 x 128 has too many registers to have a neighbour. What a program does between two products is
kept short: addresses are clamped instead of masked, and both scales of a row are multiplied before the tile is.
"""

import torch
import triton
import triton.language as tl

TILES_THAT_SHARE = 16


@triton.jit
def _pad_rows(x_ptr, out_ptr, K, padded, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * K + k, mask=k < K, other=0)
    tl.store(out_ptr + row * padded + k, x, mask=k < padded)


@triton.jit
def _multiply_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    out_ptr,
    M,
    N,
    K,
    scale_blocks,
    scale_stride,
    block_n,
    BLOCK_K: tl.constexpr,
    WIDEN: tl.constexpr,
    ONE_SCALE: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    SHARING: tl.constexpr,
):
    tiles_across = tl.cdiv(N, TILE_N)
    band = tl.program_id(0) // (SHARING * tiles_across)
    within = tl.program_id(0) % (SHARING * tiles_across)
    height = tl.minimum(tl.cdiv(M, TILE_M) - band * SHARING, SHARING)
    first_row = (band * SHARING + within % height) * TILE_M
    first_column = within // height * TILE_N
    rows = first_row + tl.arange(0, TILE_M)
    columns = first_column + tl.arange(0, TILE_N)
    # Rows and columns beyond the end repeat the last one and are not stored.
    some_rows = tl.minimum(rows, M - 1)
    some_columns = tl.minimum(columns, N - 1)
    lanes = tl.arange(0, TILE_K)
    # Offsets within a tile have 32 bits, and need half the registers of pointers.
    a_ptr += first_row.to(tl.int64) * K
    b_ptr += first_column.to(tl.int64) * K
    a_offsets = (some_rows - first_row)[:, None] * K + lanes[None, :]
    b_offsets = (some_columns - first_column)[None, :] * K + lanes[:, None]
    a_scale_ptrs = a_scales_ptr + some_rows
    pieces: tl.constexpr = (BLOCK_K + TILE_K - 1) // TILE_K
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    # One loop over all pieces of all blocks, so that loads run ahead across blocks.
    for piece in range(scale_blocks * pieces):
        block = piece // pieces
        k = block * BLOCK_K + piece % pieces * TILE_K
        if BLOCK_K < TILE_K:
            # fp8 products have 32 terms at least: those behind a shorter block are zero.
            a = tl.load(a_ptr + k + a_offsets, mask=lanes[None, :] < BLOCK_K, other=0.0)
            b = tl.load(b_ptr + k + b_offsets, mask=lanes[:, None] < BLOCK_K, other=0.0)
        else:
            a = tl.load(a_ptr + k + a_offsets)
            b = tl.load(b_ptr + k + b_offsets)
        a_scales = tl.load(a_scale_ptrs + block.to(tl.int64) * scale_stride)
        if WIDEN:
            part = tl.dot(a.to(tl.float16), b.to(tl.float16))
        else:
            part = tl.dot(a, b)
        if ONE_SCALE:
            b_scale = tl.load(b_scales_ptr + first_column // block_n * scale_blocks + block)
            acc += part * (a_scales * b_scale)[:, None]
        else:
            b_scales = tl.load(b_scales_ptr + some_columns // block_n * scale_blocks + block)
            acc += part * a_scales[:, None] * b_scales[None, :]
    out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (columns < N)[None, :])


def _padded(x, width):
    """Return x, or a copy with rows of width codes where its own end within a block: whole blocks need no mask."""
    rows, K = x.shape
    if width == K:
        return x
    out = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    _pad_rows[(rows, triton.cdiv(width, 2048))](x.view(torch.uint8), out.view(torch.uint8), K, width, BLOCK=2048)
    return out


def w8a8_block_scaled_mm(a, b, a_scales, b_scales, block_n, block_k, out):
    M, N = out.shape
    scale_blocks = a_scales.shape[1]
    width = scale_blocks * block_k
    a, b = _padded(a, width), _padded(b, width)
    # A decode batch reads b at full bandwidth: narrow tiles, so that every multiprocessor has four or more.
    tile_m = max(16, min(64, triton.next_power_of_2(M)))
    tile_n = 64 if tile_m == 16 else 128
    tile_k = max(32, min(128, block_k))
    _multiply_tile[(triton.cdiv(M, tile_m) * triton.cdiv(N, tile_n),)](
        a,
        b,
        a_scales,
        b_scales,
        out,
        M,
        N,
        width,
        scale_blocks,
        a_scales.stride(1),
        block_n,
        BLOCK_K=block_k,
        WIDEN=out.dtype == torch.float32,
        ONE_SCALE=block_n >= tile_n,
        TILE_M=tile_m,
        TILE_N=tile_n,
        TILE_K=tile_k,
        SHARING=TILES_THAT_SHARE,
        num_warps=4,
        # Three programs of three stages fill 216 of an H200's 227 KiB. AMD devices have 64 KiB of shared memory.
        num_stages=2 if torch.version.hip else (4 if tile_m == 16 else 3),
    )
