"""Products with all earlier sub-blocks at once, on matrix cores where inputs have 16 bits.

The decayed side of the rows is made once for all columns, and no program runs for the first sub-block of a chunk, which
has none. A decayed vector is the sum of its rounding to bfloat16 and of the rounded rest: three fast products of such
halves keep 16 bits, which the float32 result needs.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _halves_product(a, b, acc):
    """acc + a @ b for float32 blocks, but for the product of the two low halves."""
    a_high = a.to(tl.bfloat16)
    b_high = b.to(tl.bfloat16)
    a_low = (a - a_high.to(tl.float32)).to(tl.bfloat16)
    b_low = (b - b_high.to(tl.float32)).to(tl.bfloat16)
    acc = tl.dot(a_low, b_high, acc)
    acc = tl.dot(a_high, b_low, acc)
    return tl.dot(a_high, b_high, acc)


@triton.jit
def _products(
    query_ptr,
    key_ptr,
    beta_ptr,
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    kk_ptr,
    qk_ptr,
    sub_block,
    sm_scale,
    num_heads,
    head_dim,
    chunk_size,
    later,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    KEYS: tl.constexpr,
    HALVES: tl.constexpr,
):
    """One sub-block of rows, COLUMNS columns at a time."""
    block = tl.program_id(0) % later + 1
    index = tl.program_id(0) // later
    head = index % num_heads
    chunk = index // num_heads
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq < 0:
        return
    begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * chunk_size
    end = tl.load(cu_seqlens_ptr + seq + 1)
    first = begin + block * sub_block
    if first >= end:
        return
    lane = tl.arange(0, ROWS)
    row_mask = (lane < sub_block) & (first + lane < end)
    rows = (first + lane).to(tl.int64) * num_heads + head
    base = (first.to(tl.int64) * num_heads + head) * head_dim
    beta = tl.load(beta_ptr + rows, mask=row_mask, other=0.0).to(tl.float32)
    for left in range(0, block * sub_block, COLUMNS):
        c = left + tl.arange(0, COLUMNS)
        column_mask = c < block * sub_block
        columns = (begin + c).to(tl.int64) * num_heads + head
        kk = tl.zeros((ROWS, COLUMNS), tl.float32)
        qk = tl.zeros((ROWS, COLUMNS), tl.float32)
        for start in range(0, head_dim, KEYS):
            d = start + tl.arange(0, KEYS)
            at = tl.load(g_ptr + base + d, mask=d < head_dim, other=0.0)
            mask = row_mask[:, None] & (d < head_dim)[None, :]
            place = rows[:, None] * head_dim + d[None, :]
            after = tl.exp(tl.load(g_ptr + place, mask=mask, other=0.0) - at[None, :])
            row_keys = tl.load(key_ptr + place, mask=mask, other=0.0).to(tl.float32) * after
            row_queries = tl.load(query_ptr + place, mask=mask, other=0.0).to(tl.float32) * after
            mask = (d < head_dim)[:, None] & column_mask[None, :]
            place = columns[None, :] * head_dim + d[:, None]
            before = tl.exp(at[:, None] - tl.load(g_ptr + place, mask=mask, other=0.0))
            keys = tl.load(key_ptr + place, mask=mask, other=0.0).to(tl.float32) * before
            if HALVES:
                kk = _halves_product(row_keys, keys, kk)
                qk = _halves_product(row_queries, keys, qk)
            else:
                kk = tl.dot(row_keys, keys, kk, input_precision=PRECISION)
                qk = tl.dot(row_queries, keys, qk, input_precision=PRECISION)
        out = rows[:, None] * chunk_size + c[None, :]
        mask = row_mask[:, None] & column_mask[None, :]
        tl.store(kk_ptr + out, kk * beta[:, None], mask=mask)
        tl.store(qk_ptr + out, (qk * sm_scale).to(qk_ptr.dtype.element_ty), mask=mask)


def kda_dot_kkt_inter(query, key, beta, g, cu_seqlens, chunk_indices, kk, qk, sub_block, sm_scale):
    num_heads, head_dim = key.shape[1:]
    chunk_size = kk.shape[2]
    later = chunk_size // sub_block - 1
    if later == 0:
        return
    halves = key.element_size() == 2
    rows = max(16, triton.next_power_of_2(sub_block))
    # Without matrix units wider blocks of columns only cost registers.
    widest = 64 if halves else rows
    _products[(chunk_indices.shape[0] * num_heads * later,)](
        query,
        key,
        beta,
        g,
        cu_seqlens,
        chunk_indices,
        kk,
        qk,
        sub_block,
        sm_scale,
        num_heads,
        head_dim,
        chunk_size,
        later,
        ROWS=rows,
        COLUMNS=max(16, min(widest, triton.next_power_of_2(later * sub_block))),
        KEYS=32,
        HALVES=halves,
        num_warps=4,
        num_stages=2 if halves else 3,
    )
