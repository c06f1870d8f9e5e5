"""expect: wrong_result in heldout-28. Stale scratch: parts without tokens store nothing, and the merge reads them."""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attend_part(
    query_ptr,
    cache_ptr,
    table_ptr,
    lens_ptr,
    acc_ptr,
    max_ptr,
    sum_ptr,
    scale,
    blocks_of_sequence,
    tokens_of_part,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    PAGE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    TOKENS: tl.constexpr,
):
    sequence, kv_head, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    group: tl.constexpr = HEADS // KV_HEADS
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    heads = kv_head * group + rows
    row_mask, column_mask = rows < group, columns < SIZE
    query = tl.load(
        query_ptr + (sequence * HEADS + heads[:, None]) * SIZE + columns[None, :],
        mask=row_mask[:, None] & column_mask[None, :],
        other=0.0,
    )
    first = part * tokens_of_part
    end = tl.minimum(first + tokens_of_part, tl.load(lens_ptr + sequence))
    if first >= end:
        return
    greatest = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    acc = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(first, end, TOKENS):
        tokens = start + tl.arange(0, TOKENS)
        present = tokens < end
        block = tl.load(table_ptr + sequence * blocks_of_sequence + tokens // PAGE, mask=present, other=0).to(tl.int64)
        place = ((block * PAGE + tokens % PAGE) * KV_HEADS + kv_head) * 2 * SIZE
        key = tl.load(
            cache_ptr + place[None, :] + columns[:, None], mask=present[None, :] & column_mask[:, None], other=0.0
        )
        scores = tl.where(present[None, :], tl.dot(query, key) * (scale * LOG2_E), float("-inf"))
        higher = tl.maximum(greatest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        kept = tl.exp2(greatest - higher)
        value = tl.load(
            cache_ptr + place[:, None] + SIZE + columns[None, :],
            mask=present[:, None] & column_mask[None, :],
            other=0.0,
        )
        # Two products, so that no weight is rounded to the 8 bits of a bfloat16 number.
        coarse = weights.to(value.dtype)
        fine = (weights - coarse.to(tl.float32)).to(value.dtype)
        acc = acc * kept[:, None] + tl.dot(coarse, value) + tl.dot(fine, value)
        total = total * kept + tl.sum(weights, axis=1)
        greatest = higher
    out = (sequence * HEADS + heads) * tl.num_programs(2) + part
    tl.store(max_ptr + out, greatest, mask=row_mask)
    tl.store(sum_ptr + out, total, mask=row_mask)
    tl.store(acc_ptr + out[:, None] * SIZE + columns[None, :], acc, mask=row_mask[:, None] & column_mask[None, :])


@triton.jit
def combine_parts(
    acc_ptr, max_ptr, sum_ptr, out_ptr, parts, SIZE: tl.constexpr, PARTS: tl.constexpr, COLUMNS: tl.constexpr
):
    head = tl.program_id(0).to(tl.int64)
    part, columns = tl.arange(0, PARTS), tl.arange(0, COLUMNS)
    maxima = tl.load(max_ptr + head * parts + part, mask=part < parts, other=float("-inf"))
    sums = tl.load(sum_ptr + head * parts + part, mask=part < parts, other=0.0)
    factors = tl.exp2(maxima - tl.max(maxima, axis=0))
    acc = tl.load(
        acc_ptr + (head * parts + part[:, None]) * SIZE + columns[None, :],
        mask=(part < parts)[:, None] & (columns < SIZE)[None, :],
        other=0.0,
    )
    out = tl.sum(acc * factors[:, None], axis=0) / tl.sum(sums * factors, axis=0)
    tl.store(out_ptr + head * SIZE + columns, out.to(out_ptr.dtype.element_ty), mask=columns < SIZE)


def attend_pages(query, kv_cache, block_table, seq_lens, out):
    batch, heads, size = query.shape
    page, kv_heads = kv_cache.shape[1], kv_cache.shape[2]
    most = block_table.shape[1] * page
    tokens = 64 if size <= 128 else 32
    parts = max(1, min(64, triton.cdiv(512, batch * kv_heads), triton.cdiv(most, 4 * tokens)))
    tokens_of_part = triton.cdiv(triton.cdiv(most, parts), tokens) * tokens
    acc = torch.empty((batch * heads, parts, size), dtype=torch.float32, device=query.device)
    maxima = torch.empty((batch * heads, parts), dtype=torch.float32, device=query.device)
    sums = torch.empty((batch * heads, parts), dtype=torch.float32, device=query.device)
    columns = max(16, triton.next_power_of_2(size))
    attend_part[(batch, kv_heads, parts)](
        query,
        kv_cache,
        block_table,
        seq_lens,
        acc,
        maxima,
        sums,
        size**-0.5,
        block_table.shape[1],
        tokens_of_part,
        HEADS=heads,
        KV_HEADS=kv_heads,
        SIZE=size,
        PAGE=page,
        ROWS=max(16, triton.next_power_of_2(heads // kv_heads)),
        COLUMNS=columns,
        TOKENS=tokens,
        num_warps=4,
        num_stages=2,
    )
    combine_parts[(batch * heads,)](
        acc, maxima, sums, out, parts, SIZE=size, PARTS=triton.next_power_of_2(parts), COLUMNS=columns
    )
