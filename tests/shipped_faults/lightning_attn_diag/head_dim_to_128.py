"""expect: wrong_result in heldout-14. Size limit: values of a query and key beyond 128 are left out."""

import triton
import triton.language as tl


@triton.jit
def attend_inside_chunk(
    query_ptr,
    key_ptr,
    value_ptr,
    slopes_ptr,
    out_ptr,
    seq_len,
    num_heads,
    head_dim,
    value_dim,
    chunk_size,
    num_chunks,
    TOKENS: tl.constexpr,
    KEY_DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
):
    index = tl.program_id(0).to(tl.int64)
    head = index // num_chunks % num_heads
    begin = index % num_chunks * chunk_size
    length = tl.minimum(seq_len - begin, chunk_size)
    first = (index // num_chunks // num_heads * seq_len + begin) * num_heads + head
    d = tl.arange(0, KEY_DIM)
    e = tl.arange(0, VALUE_DIM)
    i = tl.program_id(1) * TOKENS + tl.arange(0, TOKENS)
    rows = first + i.to(tl.int64) * num_heads
    query_mask = (i < length)[:, None] & (d < head_dim)[None, :]
    query = tl.load(query_ptr + rows[:, None] * head_dim + d[None, :], mask=query_mask, other=0.0)
    slope = tl.load(slopes_ptr + head)
    acc = tl.zeros((TOKENS, VALUE_DIM), tl.float32)
    for tile in range(tl.program_id(1) + 1):
        j = tile * TOKENS + tl.arange(0, TOKENS)
        others = first + j.to(tl.int64) * num_heads
        key_mask = (j < length)[None, :] & (d < head_dim)[:, None]
        key = tl.load(key_ptr + others[None, :] * head_dim + d[:, None], mask=key_mask, other=0.0)
        value_mask = (j < length)[:, None] & (e < value_dim)[None, :]
        value = tl.load(value_ptr + others[:, None] * value_dim + e[None, :], mask=value_mask, other=0.0)
        age = i[:, None] - j[None, :]
        scores = tl.dot(query, key, input_precision="ieee") * tl.exp(-slope * age)
        scores = tl.where(age >= 0, scores, 0.0)
        acc += tl.dot(scores, value.to(tl.float32), input_precision="ieee")
    out_mask = (i < length)[:, None] & (e < value_dim)[None, :]
    tl.store(out_ptr + rows[:, None] * value_dim + e[None, :], acc.to(out_ptr.dtype.element_ty), mask=out_mask)


def lightning_attn_diag(query, key, value, slopes, chunk_size, out):
    batch, seq_len, num_heads, head_dim = query.shape
    value_dim = value.shape[3]
    num_chunks = triton.cdiv(seq_len, chunk_size)
    tokens = 32
    grid = (batch * num_heads * num_chunks, triton.cdiv(chunk_size, tokens))
    attend_inside_chunk[grid](
        query,
        key,
        value,
        slopes,
        out,
        seq_len,
        num_heads,
        head_dim,
        value_dim,
        chunk_size,
        num_chunks,
        TOKENS=tokens,
        KEY_DIM=max(16, min(128, triton.next_power_of_2(head_dim))),
        VALUE_DIM=max(16, triton.next_power_of_2(value_dim)),
    )
