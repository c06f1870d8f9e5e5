"""Chained products in 8 bits: 128 queries and 128 keys at a time, and values turned as matrix units take them.

The baseline has 32 queries and 32 keys a step, too few for the units that an H200 has for 64 rows: they stand idle,
and each key is loaded for every 32 queries. With 64 queries the L2 cache still bounds the time: 32 heads of 2048
queries, keys and 128 values read 0.54 GB, at 5 TB/s. Here 128 queries share a load, where that leaves a program for
every multiprocessor. Those units read 8-bit operands only along the summed dimension. A first
launch therefore stores values by columns, with zeros behind the last key, so that the loop has neither masks nor
transposes. It reads each value once, the loop M / 128 times. Hopper's units keep 14 bits of sums of such products, so
that those of 128 keys are added to an accumulator of float32.

A head of 192 values is summed as 128 and 64, where the baseline computes 256. Rows that are not whole vectors are
copied to padded ones first, where the baseline loads every value for itself.
"""

import torch
import triton
import triton.language as tl

KEYS = 128
ENOUGH_PROGRAMS = 128


@triton.jit
def _pad_rows(x_ptr, out_ptr, rows, width, out_width, BLOCK: tl.constexpr):
    """Copy rows of bytes to rows of out_width bytes, with zeros behind."""
    r = (tl.program_id(0) * 32 + tl.arange(0, 32)).to(tl.int64)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + r * width + c, mask=(r < rows) & (c < width), other=0)
    tl.store(out_ptr + r * out_width + c, x, mask=(r < rows) & (c < out_width))


@triton.jit
def _turn(x_ptr, out_ptr, rows, width, out_rows):
    """Store bytes (batch, rows, width) as (batch, width, out_rows), with zeros behind the last row."""
    problem = tl.program_id(2).to(tl.int64)
    r = tl.program_id(0) * 64 + tl.arange(0, 64)
    c = tl.program_id(1) * 64 + tl.arange(0, 64)
    inside = (r < rows)[:, None] & (c < width)[None, :]
    x = tl.load(x_ptr + (problem * rows + r)[:, None] * width + c[None, :], mask=inside, other=0)
    tl.store(out_ptr + (problem * width + c)[:, None] * out_rows + r[None, :], x.T, mask=(c < width)[:, None])


@triton.jit
def _head_of(rows_ptr, head_dim, FIRST: tl.constexpr, WIDTH: tl.constexpr):
    """Load WIDTH values from the FIRST on of each row, with zeros past head_dim."""
    columns = FIRST + tl.arange(0, WIDTH)
    return tl.load(rows_ptr[:, None] + columns[None, :], mask=(columns < head_dim)[None, :], other=0.0)


@triton.jit
def _chain(
    query_ptr,
    key_ptr,
    value_ptr,
    out_ptr,
    sm_scale,
    out_scale,
    M,
    N,
    padded_keys,
    head_dim,
    value_dim,
    LARGEST: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    HEAD: tl.constexpr,
    REST: tl.constexpr,
    VALUE: tl.constexpr,
):
    """Multiply ROWS queries with KEYS keys at a time, and their scores with values that are stored by columns."""
    problem = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    queries = query_ptr + (problem * M + tl.minimum(rows, M - 1)) * head_dim
    query = _head_of(queries, head_dim, 0, HEAD)
    if REST > 0:
        query_rest = _head_of(queries, head_dim, HEAD, REST)
    columns = tl.arange(0, VALUE)
    value_rows = value_ptr + (problem * value_dim + tl.minimum(columns, value_dim - 1)) * padded_keys
    acc = tl.zeros((ROWS, VALUE), tl.float32)
    for start in range(0, padded_keys, KEYS):
        numbers = start + tl.arange(0, KEYS)
        # Keys past the end repeat the last one: their values are zeros.
        keys = key_ptr + (problem * N + tl.minimum(numbers, N - 1)) * head_dim
        scores = tl.dot(query, _head_of(keys, head_dim, 0, HEAD).T)
        if REST > 0:
            scores = tl.dot(query_rest, _head_of(keys, head_dim, HEAD, REST).T, scores)
        scores = tl.minimum(tl.maximum(scores * sm_scale, -LARGEST), LARGEST)
        values = tl.load(value_rows[None, :] + numbers[:, None])
        acc += tl.dot(scores.to(values.dtype), values)
    out = out_ptr + (problem * M + rows)[:, None] * value_dim + columns[None, :]
    mask = (rows < M)[:, None] & (columns < value_dim)[None, :]
    tl.store(out, (acc * out_scale).to(out_ptr.dtype.element_ty), mask=mask)


def _padded(x, width):
    """Return a copy of codes (batch, rows, head_dim) with rows of width codes."""
    batch, rows, head_dim = x.shape
    out = torch.empty((batch, rows, width), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(batch * rows, 32),)
    block = triton.next_power_of_2(width)
    _pad_rows[grid](x.view(torch.uint8), out.view(torch.uint8), batch * rows, head_dim, width, BLOCK=block)
    return out


def _turned(value, padded_keys):
    """Return values by columns (batch, value_dim, padded_keys)."""
    batch, N, value_dim = value.shape
    out = torch.empty((batch, value_dim, padded_keys), dtype=value.dtype, device=value.device)
    grid = (padded_keys // 64, triton.cdiv(value_dim, 64), batch)
    _turn[grid](value.view(torch.uint8), out.view(torch.uint8), N, value_dim, padded_keys)
    return out


def _parts_of_head(head_dim):
    """Return two widths that cover a head: powers of two of at least 32, or one of them and 0."""
    first = max(32, triton.next_power_of_2(head_dim + 1) // 2)
    rest = max(32, triton.next_power_of_2(head_dim - first)) if head_dim > first else 0
    return (2 * first, 0) if rest == first else (first, rest)


def chained_dot_fp8(query, key, value, sm_scale, out_scale, out):
    batch, M, head_dim = query.shape
    N, value_dim = value.shape[1:]
    padded_keys = triton.cdiv(N, KEYS) * KEYS
    if head_dim % 16 and M > 64:
        head_dim = triton.cdiv(head_dim, 32) * 32
        query, key = _padded(query, head_dim), _padded(key, head_dim)
    value = _turned(value, padded_keys)
    head, rest = _parts_of_head(head_dim)
    wide = max(32, triton.next_power_of_2(value_dim))
    rows = max(16, min(64, triton.next_power_of_2(M)))
    large = wide > 128 or head + rest > 192
    many = M > 64 and batch * triton.cdiv(M, 128) >= ENOUGH_PROGRAMS
    if many and wide <= 128 and not torch.version.hip:
        rows = 128
    _chain[(triton.cdiv(M, rows), batch)](
        query,
        key,
        value,
        out,
        sm_scale,
        out_scale,
        M,
        N,
        padded_keys,
        head_dim,
        value_dim,
        LARGEST=torch.finfo(value.dtype).max,
        ROWS=rows,
        # AMD devices have 64 KiB of shared memory.
        KEYS=64 if large and torch.version.hip else KEYS,
        HEAD=head,
        REST=rest,
        VALUE=wide,
        # Two accumulators of 128 × 128 or 64 × 256 need the registers of eight warps.
        num_warps=8 if wide > 128 or rows == 128 else 4,
        # With two, keys and values arrive only after the step before has ended.
        num_stages=3 if rows == 128 else 2,
    )
