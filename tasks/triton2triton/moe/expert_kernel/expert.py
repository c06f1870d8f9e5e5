"""One expert's product: codes widened once for many tokens, in registers for fewer, and K in parts for few rows.

The baseline widens every code for each 128 tokens, in registers, stores it in shared memory and waits for each product.
From 1024 tokens on, a first launch here writes the expert's codes in the dtype of x: 5 bytes a code, 0.07 ms for 58.7
million codes at 4.2 TB/s. Both operands then come from shared memory, and products overlap with each other.

For fewer tokens the product is that of the weights by the tokens, both turned: the units of an H200 take the left
operand from registers. Neighbouring programs have the same weights and other tokens, so that weights come from memory
once; the baseline passes all weights through the cache for every 128 tokens.

Up to 128 tokens leave the baseline a program for every 128 outputs, 48 for 6144 outputs on 132 multiprocessors. Here K
is split until there are about 768 programs, whose sums a second launch adds. Odd rows, which the baseline loads code by
code for every tile, are copied to whole blocks and widened from 256 tokens on. float32 keeps the baseline's tile.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
WIDENED_FROM = 1024  # tokens
ODD_WIDENED_FROM = 256  # tokens, where rows do not consist of vectors
COPIED = 2048
ENOUGH_PROGRAMS = 768
FEWEST_STEPS = 8


@triton.jit
def _pad_rows(x_ptr, ids_ptr, expert_ptr, out_ptr, K, width, BLOCK: tl.constexpr):
    """Copy listed rows, or widen the rows of one expert, to rows of `width` values with zeros behind their own."""
    row = tl.program_id(0).to(tl.int64)
    source = row
    if ids_ptr is not None:
        source = tl.load(ids_ptr + row).to(tl.int64)
    if expert_ptr is not None:
        source += tl.load(expert_ptr).to(tl.int64) * tl.num_programs(0)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x_ptr + source * K + k, mask=k < K, other=0)
    tl.store(out_ptr + row * width + k, values.to(out_ptr.dtype.element_ty), mask=k < width)


@triton.jit
def _store_outputs(acc, scales_ptr, bias_ptr, out_ptr, expert, rows, columns, num_rows, N):
    """Scale sums of products, add the bias and store them."""
    of_expert = expert * N + tl.minimum(columns, N - 1)
    acc *= tl.load(scales_ptr + of_expert)[None, :]
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + of_expert).to(tl.float32)[None, :]
    target = out_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=(rows < num_rows)[:, None] & (columns < N)[None, :])


@triton.jit
def _multiply_listed_tokens(
    x_ptr,
    weight_ptr,
    scales_ptr,
    bias_ptr,
    expert_id_ptr,
    token_ids_ptr,
    rows_ptr,
    out_ptr,
    parts_ptr,
    max_tokens,
    N,
    K,
    part_depth,
    WIDENED: tl.constexpr,
    WHOLE_BLOCKS: tl.constexpr,
    TURNED: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Multiply one tile of tokens with one tile of an expert's outputs, over one part of K."""
    first = tl.program_id(0) * TILE_M
    num_rows = tl.load(rows_ptr)
    if first >= num_rows:
        return
    expert = tl.load(expert_id_ptr).to(tl.int64)
    rows = first + tl.arange(0, TILE_M)
    columns = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    some_rows = tl.minimum(rows, num_rows - 1)
    some_columns = tl.minimum(columns, N - 1).to(tl.int64)
    tokens = some_rows.to(tl.int64)
    if token_ids_ptr is not None:
        tokens = tl.load(token_ids_ptr + some_rows).to(tl.int64)
    if not WIDENED:
        some_columns += expert * N
    begin = tl.program_id(2) * part_depth
    end = tl.minimum(begin + part_depth, K)
    k = tl.arange(0, DEPTH)
    x_at = x_ptr + tokens[:, None] * K + begin + k[None, :]
    codes_at = weight_ptr + some_columns[:, None] * K + begin + k[None, :]
    acc = tl.zeros((TILE_N, TILE_M) if TURNED else (TILE_M, TILE_N), tl.float32)
    for start in range(begin, end, DEPTH):
        if WHOLE_BLOCKS:
            x = tl.load(x_at)
            codes = tl.load(codes_at)
        else:
            x = tl.load(x_at, mask=(k < end - start)[None, :], other=0.0)
            codes = tl.load(codes_at, mask=(k < end - start)[None, :], other=0)
        # Codes up to 127 are exact in every dtype of x.
        if TURNED:
            # Never true: a use of the sum outside of products makes Triton wait for them in every step.
            if start < 0:
                acc = -acc
            acc = tl.dot(codes.to(x.dtype), x.T, acc)
        else:
            acc = tl.dot(x, codes.to(x.dtype).T, acc, input_precision=PRECISION)
        x_at += DEPTH
        codes_at += DEPTH
    if TURNED:
        acc = acc.T
    if parts_ptr is None:
        _store_outputs(acc, scales_ptr, bias_ptr, out_ptr, expert, rows, columns, num_rows, N)
    else:
        target = parts_ptr + (tl.program_id(2).to(tl.int64) * max_tokens + rows)[:, None] * N + columns[None, :]
        tl.store(target, acc, mask=(rows < num_rows)[:, None] & (columns < N)[None, :])


@triton.jit
def _add_parts(
    parts_ptr, scales_ptr, bias_ptr, expert_id_ptr, rows_ptr, out_ptr, max_tokens, N, parts, BLOCK: tl.constexpr
):
    """Add the sums of all parts of K for one row and a block of outputs."""
    row = tl.program_id(0)
    num_rows = tl.load(rows_ptr)
    if row >= num_rows:
        return
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((1, BLOCK), tl.float32)
    for part in range(parts):
        place = (tl.cast(part, tl.int64) * max_tokens + row) * N
        acc += tl.load(parts_ptr + place + columns, mask=columns < N, other=0.0)[None, :]
    expert = tl.load(expert_id_ptr).to(tl.int64)
    _store_outputs(acc, scales_ptr, bias_ptr, out_ptr, expert, row + tl.arange(0, 1), columns, num_rows, N)


def _tile(max_tokens, item_bytes, widened):
    """Return tokens, outputs, depth, warps and stages of a tile."""
    if widened:
        return 128, 128 if torch.version.hip else 256, 64, 8, 4
    if item_bytes == 4:
        return max(16, min(64, triton.next_power_of_2(max_tokens))), 64, 32, 4, 3
    if max_tokens <= 32:
        return max(16, triton.next_power_of_2(max_tokens)), 64, 128, 4, 4
    if max_tokens <= 64:
        return 64, 64, 64, 4, 4
    return 128, 128, 64, 8, 4


def _padded(x, token_ids, rows, width):
    """Return the listed tokens in rows of `width` values."""
    out = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    grid = (rows, triton.cdiv(width, COPIED))
    _pad_rows[grid](x, token_ids, None, out, x.shape[1], width, BLOCK=COPIED)
    return out


def _widened(weight, expert_id, dtype, width):
    """Return one expert's weights in rows of `width` values of x's dtype."""
    _, N, K = weight.shape
    out = torch.empty((N, width), dtype=dtype, device=weight.device)
    _pad_rows[(N, triton.cdiv(width, COPIED))](weight, None, expert_id, out, K, width, BLOCK=COPIED)
    return out


def expert_kernel(x, weight, scales, bias, expert_id, token_ids, expert_num_tokens, out):
    max_tokens, N = out.shape
    K = x.shape[1]
    narrow = x.element_size() == 2
    widened = narrow and min(max_tokens, N) >= (ODD_WIDENED_FROM if K % 16 else WIDENED_FROM)
    tile_m, tile_n, depth, num_warps, num_stages = _tile(max_tokens, x.element_size(), widened)
    if widened:
        width = triton.cdiv(K, depth) * depth
        weight = _widened(weight, expert_id, x.dtype, width)
        if width != K:
            x, token_ids = _padded(x, token_ids, max_tokens, width), None
        K = width
    row_tiles, column_tiles = triton.cdiv(max_tokens, tile_m), triton.cdiv(N, tile_n)
    steps, parts = triton.cdiv(K, depth), 1
    if narrow and row_tiles == 1:
        parts = max(1, min(ENOUGH_PROGRAMS // column_tiles, steps // FEWEST_STEPS))
    part_depth = triton.cdiv(steps, parts) * depth
    parts = triton.cdiv(K, part_depth)
    sums = None
    if parts > 1:
        sums = torch.empty((parts, max_tokens, N), dtype=torch.float32, device=x.device)
    _multiply_listed_tokens[(row_tiles, column_tiles, parts)](
        x,
        weight,
        scales,
        bias,
        expert_id,
        token_ids,
        expert_num_tokens,
        out,
        sums,
        max_tokens,
        N,
        K,
        part_depth,
        WIDENED=widened,
        WHOLE_BLOCKS=K % depth == 0,
        TURNED=narrow and not widened,
        TILE_M=tile_m,
        TILE_N=tile_n,
        DEPTH=depth,
        num_warps=num_warps,
        # 192 of an H200's 227 KiB of shared memory at most.
        num_stages=2 if torch.version.hip else num_stages,
    )
    if parts > 1:
        grid = (max_tokens, triton.cdiv(N, 1024))
        _add_parts[grid](sums, scales, bias, expert_id, expert_num_tokens, out, max_tokens, N, parts, BLOCK=1024)
