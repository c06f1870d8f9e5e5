"""Linear attention decoding that reads every state once: update and output in one pass, split along the values."""

import triton
import triton.language as tl


@triton.jit
def _step(
    query_ptr,
    key_ptr,
    value_ptr,
    slopes_ptr,
    idx_mapping_ptr,
    kv_cache_ptr,
    out_ptr,
    query_stride,
    key_stride,
    value_stride,
    num_heads,
    head_dim,
    value_dim,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
):
    """All rows of the state of one request and head, VALUES columns of it; the columns are independent."""
    row = tl.program_id(0).to(tl.int64)
    head = row % num_heads
    slot = tl.load(idx_mapping_ptr + row // num_heads).to(tl.int64)
    d = tl.arange(0, KEYS)
    e = tl.program_id(1) * VALUES + tl.arange(0, VALUES)
    mask = (slot >= 0) & (d < head_dim)[:, None] & (e < value_dim)[None, :]
    place = kv_cache_ptr + ((slot * num_heads + head) * head_dim + d)[:, None] * value_dim + e[None, :]
    token = row // num_heads
    state = tl.load(place, mask=mask, other=0.0)
    query = tl.load(query_ptr + token * query_stride + head * head_dim + d, mask=d < head_dim, other=0.0).to(tl.float32)
    key = tl.load(key_ptr + token * key_stride + head * head_dim + d, mask=d < head_dim, other=0.0).to(tl.float32)
    value = tl.load(value_ptr + token * value_stride + head * value_dim + e, mask=e < value_dim, other=0.0).to(
        tl.float32
    )
    state = state * tl.exp(-tl.load(slopes_ptr + head)) + key[:, None] * value[None, :]
    tl.store(place, state, mask=mask)
    out = tl.where(slot >= 0, tl.sum(query[:, None] * state, axis=0), 0.0)
    tl.store(out_ptr + row * value_dim + e, out.to(out_ptr.dtype.element_ty), mask=e < value_dim)


def linear_attn_decode(query, key, value, slopes, idx_mapping, kv_cache, out):
    num_reqs, num_heads, head_dim = query.shape
    value_dim = value.shape[2]
    values = min(32, triton.next_power_of_2(value_dim))
    _step[(num_reqs * num_heads, triton.cdiv(value_dim, values))](
        query,
        key,
        value,
        slopes,
        idx_mapping,
        kv_cache,
        out,
        query.stride(0),
        key.stride(0),
        value.stride(0),
        num_heads,
        head_dim,
        value_dim,
        KEYS=triton.next_power_of_2(head_dim),
        VALUES=values,
        num_warps=4,
    )
