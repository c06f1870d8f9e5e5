"""expect: wrong_result in heldout-25. Accumulation: the first product is summed in float16."""

import torch
import triton
import triton.language as tl


@triton.jit
def load_rows(base_ptr, rows, n_rows, width, WIDTH: tl.constexpr):
    """Some rows of a contiguous matrix, with zeros around it."""
    columns = tl.arange(0, WIDTH)
    mask = (rows < n_rows)[:, None] & (columns < width)[None, :]
    return tl.load(base_ptr + rows.to(tl.int64)[:, None] * width + columns[None, :], mask=mask, other=0.0)


@triton.jit
def chain(
    query_ptr,
    key_ptr,
    value_ptr,
    out_ptr,
    sm_scale,
    out_scale,
    M,
    N,
    head_dim,
    value_dim,
    LARGEST: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    HEAD: tl.constexpr,
    VALUE: tl.constexpr,
):
    problem = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    query = load_rows(query_ptr + problem * M * head_dim, rows, M, head_dim, HEAD)
    acc = tl.zeros((ROWS, VALUE), tl.float32)
    for start in range(0, N, KEYS):
        keys = start + tl.arange(0, KEYS)
        key = load_rows(key_ptr + problem * N * head_dim, keys, N, head_dim, HEAD)
        value = load_rows(value_ptr + problem * N * value_dim, keys, N, value_dim, VALUE)
        scores = tl.dot(query, key.T, out_dtype=tl.float16).to(tl.float32) * sm_scale
        scores = tl.minimum(tl.maximum(scores, -LARGEST), LARGEST)
        acc += tl.dot(scores.to(value.dtype), value)
    columns = tl.arange(0, VALUE)
    out = out_ptr + (problem * M + rows)[:, None] * value_dim + columns[None, :]
    mask = (rows < M)[:, None] & (columns < value_dim)[None, :]
    tl.store(out, (acc * out_scale).to(out_ptr.dtype.element_ty), mask=mask)


def chained_dot_fp8(query, key, value, sm_scale, out_scale, out):
    batch, M, head_dim = query.shape
    N, value_dim = value.shape[1:]
    # Matrix units sum over 32 values of 8 bits at once.
    head, wide = (max(32, triton.next_power_of_2(size)) for size in (head_dim, value_dim))
    chain[(triton.cdiv(M, 32), batch)](
        query,
        key,
        value,
        out,
        sm_scale,
        out_scale,
        M,
        N,
        head_dim,
        value_dim,
        LARGEST=torch.finfo(value.dtype).max,
        ROWS=32,
        KEYS=32,
        HEAD=head,
        VALUE=wide,
    )
