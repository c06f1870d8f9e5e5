"""Linear attention decoding in two launches: one updates every state, another multiplies it by the query."""

import triton
import triton.language as tl


@triton.jit
def update_state(
    key_ptr,
    value_ptr,
    slopes_ptr,
    idx_mapping_ptr,
    kv_cache_ptr,
    key_stride,
    value_stride,
    num_heads,
    head_dim,
    value_dim,
    ROWS: tl.constexpr,
    VALUES: tl.constexpr,
):
    """One request and head, ROWS rows of its state at a time."""
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + row // num_heads).to(tl.int64)
    head = row % num_heads
    e = tl.arange(0, VALUES)
    value = tl.load(
        value_ptr + row // num_heads * value_stride + head * value_dim + e, mask=e < value_dim, other=0.0
    ).to(tl.float32)
    decay = tl.exp(-tl.load(slopes_ptr + head))
    for start in range(0, head_dim, ROWS):
        d = start + tl.arange(0, ROWS)
        key = tl.load(key_ptr + row // num_heads * key_stride + head * head_dim + d, mask=d < head_dim, other=0.0).to(
            tl.float32
        )
        place = kv_cache_ptr + ((slot * num_heads + head) * head_dim + d)[:, None] * value_dim + e[None, :]
        mask = (slot >= 0) & (d < head_dim)[:, None] & (e < value_dim)[None, :]
        state = tl.load(place, mask=mask, other=0.0)
        tl.store(place, state * decay + key[:, None] * value[None, :], mask=mask)


@triton.jit
def read_state(
    query_ptr,
    idx_mapping_ptr,
    kv_cache_ptr,
    out_ptr,
    query_stride,
    num_heads,
    head_dim,
    value_dim,
    ROWS: tl.constexpr,
    VALUES: tl.constexpr,
):
    """One request and head: its query times its state, zero for padding."""
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + row // num_heads).to(tl.int64)
    head = row % num_heads
    e = tl.arange(0, VALUES)
    acc = tl.zeros((VALUES,), tl.float32)
    for start in range(0, head_dim, ROWS):
        d = start + tl.arange(0, ROWS)
        query = tl.load(
            query_ptr + row // num_heads * query_stride + head * head_dim + d, mask=d < head_dim, other=0.0
        ).to(tl.float32)
        place = kv_cache_ptr + ((slot * num_heads + head) * head_dim + d)[:, None] * value_dim + e[None, :]
        mask = (slot >= 0) & (d < head_dim)[:, None] & (e < value_dim)[None, :]
        acc += tl.sum(query[:, None] * tl.load(place, mask=mask, other=0.0), axis=0)
    tl.store(out_ptr + row * value_dim + e, acc.to(out_ptr.dtype.element_ty), mask=e < value_dim)


def linear_attn_decode(query, key, value, slopes, idx_mapping, kv_cache, out):
    num_reqs, num_heads, head_dim = query.shape
    value_dim = value.shape[2]
    grid = (num_reqs * num_heads,)
    tile = {"ROWS": 16, "VALUES": triton.next_power_of_2(value_dim)}
    sizes = num_heads, head_dim, value_dim
    update_state[grid](key, value, slopes, idx_mapping, kv_cache, key.stride(0), value.stride(0), *sizes, **tile)
    read_state[grid](query, idx_mapping, kv_cache, out, query.stride(0), *sizes, **tile)
