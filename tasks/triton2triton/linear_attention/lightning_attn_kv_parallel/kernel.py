"""Decayed sum of key-value products: one program per chunk, head and 32x32 tile of the product."""

import triton
import triton.language as tl


@triton.jit
def decayed_chunk_product(
    key_ptr,
    value_ptr,
    slopes_ptr,
    kv_ptr,
    seq_len,
    num_heads,
    head_dim,
    value_dim,
    chunk_size,
    num_chunks,
    TOKENS: tl.constexpr,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
):
    index = tl.program_id(0).to(tl.int64)
    chunk = index % num_chunks
    head = index // num_chunks % num_heads
    batch = index // num_chunks // num_heads
    d = tl.program_id(1) * KEYS + tl.arange(0, KEYS)
    e = tl.program_id(2) * VALUES + tl.arange(0, VALUES)
    slope = tl.load(slopes_ptr + head)
    begin = chunk * chunk_size
    length = tl.minimum(seq_len - begin, chunk_size)
    acc = tl.zeros((KEYS, VALUES), tl.float32)
    for start in range(0, chunk_size, TOKENS):
        i = start + tl.arange(0, TOKENS)
        inside = i < length
        rows = (batch * seq_len + begin + i) * num_heads + head
        key_mask = inside[:, None] & (d < head_dim)[None, :]
        keys = tl.load(key_ptr + rows[:, None] * head_dim + d[None, :], mask=key_mask, other=0.0).to(tl.float32)
        value_mask = inside[:, None] & (e < value_dim)[None, :]
        values = tl.load(value_ptr + rows[:, None] * value_dim + e[None, :], mask=value_mask, other=0.0).to(tl.float32)
        # Rows past the end would get a growing factor.
        decay = tl.where(inside, tl.exp(-slope * (length - 1 - i)), 0.0)
        acc += tl.dot(tl.trans(keys * decay[:, None]), values, input_precision="ieee")
    out = (index * head_dim + d)[:, None] * value_dim + e[None, :]
    tl.store(kv_ptr + out, acc, mask=(d < head_dim)[:, None] & (e < value_dim)[None, :])


def lightning_attn_kv_parallel(key, value, slopes, chunk_size, kv):
    batch, seq_len, num_heads, head_dim = key.shape
    value_dim = value.shape[3]
    num_chunks = kv.shape[2]
    grid = (batch * num_heads * num_chunks, triton.cdiv(head_dim, 32), triton.cdiv(value_dim, 32))
    decayed_chunk_product[grid](
        key,
        value,
        slopes,
        kv,
        seq_len,
        num_heads,
        head_dim,
        value_dim,
        chunk_size,
        num_chunks,
        TOKENS=16,
        KEYS=32,
        VALUES=32,
    )
