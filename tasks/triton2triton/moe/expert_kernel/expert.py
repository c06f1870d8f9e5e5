"""One expert's product: int8 weights as the left operand, tiles down the rows first, and K in parts for few rows.

The baseline widens codes in registers and stores them in shared memory again, as its right operand. Here the product
is that of the weights by the tokens, both turned: the units of an H200 take the left operand from registers. A tile of
up to 256 tokens halves how often a code is widened. Neighbouring programs have the same weights and other tokens, so
that weights come from memory once; the baseline passes all weights through the cache for every 128 tokens.

Up to 128 tokens leave the baseline a program for every 128 outputs, 48 for 6144 outputs on 132 multiprocessors. Here K
is split until there are about 768 programs, whose sums a second launch adds. Odd rows, which the baseline loads code by
code for every tile, are copied to whole blocks once where there are many tokens. float32 keeps the baseline's tile.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
MANY_TOKENS = 256
ENOUGH_PROGRAMS = 768
FEWEST_STEPS = 8


@triton.jit
def _pad_rows(x_ptr, ids_ptr, expert_ptr, out_ptr, K, width, BLOCK: tl.constexpr):
    """Copy listed rows, or the rows of one expert, to rows of `width` values with zeros behind their own."""
    row = tl.program_id(0).to(tl.int64)
    source = row
    if ids_ptr is not None:
        source = tl.load(ids_ptr + row).to(tl.int64)
    if expert_ptr is not None:
        source += tl.load(expert_ptr).to(tl.int64) * tl.num_programs(0)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + row * width + k, tl.load(x_ptr + source * K + k, mask=k < K, other=0), mask=k < width)


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
    COPIED: tl.constexpr,
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
    if COPIED:
        tokens = some_rows.to(tl.int64)
    else:
        tokens = tl.load(token_ids_ptr + some_rows).to(tl.int64)
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


def _tile(max_tokens, item_bytes):
    """Return tokens, outputs, depth, warps and stages of a tile."""
    if item_bytes == 4:
        return max(16, min(64, triton.next_power_of_2(max_tokens))), 64, 32, 4, 3
    if max_tokens <= 32:
        return max(16, triton.next_power_of_2(max_tokens)), 64, 128, 4, 4
    if max_tokens <= 64:
        return 64, 64, 64, 4, 4
    # AMD devices have 64 KiB of shared memory.
    return (256 if max_tokens > 1024 and not torch.version.hip else 128), 128, 64, 8, 4


def _copies(x, weight, expert_id, token_ids, width):
    """Return the listed tokens and the expert's weights in rows of `width` values."""
    N, K = weight.shape[1:]
    tokens = torch.empty((token_ids.numel(), width), dtype=x.dtype, device=x.device)
    codes = torch.empty((N, width), dtype=weight.dtype, device=x.device)
    blocks = triton.cdiv(width, 1024)
    _pad_rows[(token_ids.numel(), blocks)](x, token_ids, None, tokens, K, width, BLOCK=1024)
    _pad_rows[(N, blocks)](weight, None, expert_id, codes, K, width, BLOCK=1024)
    return tokens, codes


def expert_kernel(x, weight, scales, bias, expert_id, token_ids, expert_num_tokens, out):
    max_tokens, N = out.shape
    K = x.shape[1]
    narrow = x.element_size() == 2
    tile_m, tile_n, depth, num_warps, num_stages = _tile(max_tokens, x.element_size())
    copied = narrow and K % 16 != 0 and min(max_tokens, N) >= MANY_TOKENS
    if copied:
        K = triton.cdiv(K, depth) * depth
        x, weight = _copies(x, weight, expert_id, token_ids, K)
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
        COPIED=copied,
        WHOLE_BLOCKS=K % depth == 0,
        TURNED=narrow,
        TILE_M=tile_m,
        TILE_N=tile_n,
        DEPTH=depth,
        num_warps=num_warps,
        # 152 of an H200's 227 KiB of shared memory at most.
        num_stages=2 if torch.version.hip else num_stages,
    )
    if parts > 1:
        grid = (max_tokens, triton.cdiv(N, 1024))
        _add_parts[grid](sums, scales, bias, expert_id, expert_num_tokens, out, max_tokens, N, parts, BLOCK=1024)
