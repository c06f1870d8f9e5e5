"""Block-scaled expert product with a loop of loads, products and one fused multiplication and addition a result.

After each product of 128 codes the baseline waits for matrix units, only then loads 128 scales of columns that are
one number, passes them through shared memory, and multiplies every result twice. Here that scale is loaded once,
before the product, with those of rows: 64 operations a thread instead of 128, and 6 to 9 loads instead of 54 in the
code for gfx942. Addresses are clamped instead of masked.

On an H200, blocks of 64 and 128 rows are tiles of 64 x 128 with 165 registers a thread, three of which a multiprocessor
holds. The baseline's have 240 to 250, two of 64 x 128 or one of 128 x 128: 8 warps instead of 12, in fewer programs
that take turns.

Blocks of 16 rows are bound by weights. NVIDIA's units for fp8 take 64 rows of their first operand; for 16 rows Triton
widens both operands to float16 in registers. Here weights are the first operand and go from shared memory to the units
as they are, in half of the registers (62 to 64, from 128 to 138). Tiles have 64 columns instead of 128, with a stage
more, so that DeepSeek-V3's 896 programs spread over 132 multiprocessors better than 448.

AMD's units take 16 rows of fp8, and blocks of 128 rows are one tile of 128 columns there. Rows of codes that end within
a group, as 2047 do, are copied to whole groups first. The baseline loads such codes one by one in every tile: a 12
times, b 3.5 times.
"""

import torch
import triton
import triton.language as tl

BLOCKS_THAT_SHARE = 64


@triton.jit
def _pad_rows(x_ptr, out_ptr, K, padded, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * K + k, mask=k < K, other=0)
    tl.store(out_ptr + row * padded + k, x, mask=k < padded)


@triton.jit
def _expert_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    expert_ids_ptr,
    out_ptr,
    num_blocks,
    N,
    K,
    groups,
    group_n,
    GROUP_K: tl.constexpr,
    WIDEN: tl.constexpr,
    ONE_SCALE: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    PARTS: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    SHARING: tl.constexpr,
):
    tiles_across = tl.cdiv(N, TILE_N)
    band = tl.program_id(0) // (SHARING * tiles_across)
    within = tl.program_id(0) % (SHARING * tiles_across)
    height = tl.minimum(num_blocks * PARTS - band * SHARING, SHARING)
    row_tile = band * SHARING + within % height
    expert = tl.load(expert_ids_ptr + row_tile // PARTS).to(tl.int64)
    if expert < 0:
        return
    first_column = within // height * TILE_N
    first_row = row_tile.to(tl.int64) * TILE_M
    rows = tl.arange(0, TILE_M)
    columns = first_column + tl.arange(0, TILE_N)
    # Columns beyond the end repeat the last one and are not stored.
    some_columns = tl.minimum(columns, N - 1)
    lanes = tl.arange(0, TILE_K)
    # Offsets within a tile have 32 bits, and need half the registers of pointers.
    a_ptr += first_row * K
    b_ptr += (expert * N + first_column) * K
    a_offsets = rows[:, None] * K + lanes[None, :]
    b_offsets = (some_columns - first_column)[None, :] * K + lanes[:, None]
    a_scale_ptrs = a_scales_ptr + (first_row + rows) * groups
    b_scales_ptr += expert * tl.cdiv(N, group_n) * groups
    b_scale_offsets = some_columns // group_n * groups
    pieces: tl.constexpr = (GROUP_K + TILE_K - 1) // TILE_K
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    # One loop over all pieces of all groups, so that loads run ahead across groups.
    for piece in range(groups * pieces):
        group = piece // pieces
        k = group * GROUP_K + piece % pieces * TILE_K
        if GROUP_K < TILE_K:
            # fp8 products have 32 terms at least: those behind a shorter group are zero.
            a = tl.load(a_ptr + k + a_offsets, mask=lanes[None, :] < GROUP_K, other=0.0)
            b = tl.load(b_ptr + k + b_offsets, mask=lanes[:, None] < GROUP_K, other=0.0)
        else:
            a = tl.load(a_ptr + k + a_offsets)
            b = tl.load(b_ptr + k + b_offsets)
        scales = tl.load(a_scale_ptrs + group)
        if ONE_SCALE:
            scales *= tl.load(b_scales_ptr + first_column // group_n * groups + group)
        if WIDEN:
            a, b = a.to(tl.float16), b.to(tl.float16)
        if TRANSPOSED:
            # Weights are the first operand.
            part = tl.trans(tl.dot(tl.trans(b), tl.trans(a)))
        else:
            part = tl.dot(a, b)
        part *= scales[:, None]
        if not ONE_SCALE:
            part *= tl.load(b_scales_ptr + b_scale_offsets + group)[None, :]
        acc += part
    places = out_ptr + first_row * N + rows[:, None] * N + columns[None, :]
    tl.store(places, acc.to(out_ptr.dtype.element_ty), mask=(columns < N)[None, :])


def _padded(x, width):
    """Return x, or a copy with rows of width codes where its own end within a group: whole groups need no mask."""
    K = x.shape[-1]
    if width == K:
        return x
    rows = x.numel() // K
    out = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    _pad_rows[(rows, triton.cdiv(width, 2048))](x.view(torch.uint8), out.view(torch.uint8), K, width, BLOCK=2048)
    return out


def moe_mmk(a, b, a_scales, b_scales, expert_ids, out, group_n, group_k):
    num_blocks, N, groups = expert_ids.numel(), b.shape[1], a_scales.shape[1]
    width = groups * group_k
    block_m = a.shape[0] // num_blocks
    amd = torch.version.hip is not None
    widen = out.dtype == torch.float32
    tile_m = block_m if amd else min(64, block_m)
    tile_n = 64 if widen or tile_m == 16 else 128
    parts = block_m // tile_m
    _expert_tile[(num_blocks * parts * triton.cdiv(N, tile_n),)](
        _padded(a, width),
        _padded(b, width),
        a_scales,
        b_scales,
        expert_ids,
        out,
        num_blocks,
        N,
        width,
        groups,
        group_n,
        GROUP_K=group_k,
        # fp8 products may add up in few bits. float16 holds every e4m3 number, and its products add up in full.
        WIDEN=widen,
        ONE_SCALE=group_n >= tile_n,
        TRANSPOSED=tile_m < 64 and not amd,
        PARTS=parts,
        TILE_M=tile_m,
        TILE_N=tile_n,
        TILE_K=max(32, min(128, group_k)),
        SHARING=BLOCKS_THAT_SHARE * parts,
        num_warps=8 if tile_m == 128 else 4,
        num_stages=2 if amd else (4 if tile_m == 16 else 3),
    )
