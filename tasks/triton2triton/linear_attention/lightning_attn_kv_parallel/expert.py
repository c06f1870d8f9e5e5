"""Decayed key-value products on matrix cores: a 64x128 tile a program, the decayed keys as a sum of two half numbers.

Where keys and values have 16 bits, a decayed key needs more. Its rounded value and the rounded rest together keep 16
bits of a bfloat16 key and 22 of a float16 one, so that two fast products serve as one in float32. float32 takes three
TF32 products on NVIDIA, in tiles of 32 × 64 and steps of 16 tokens: seven fit on an SM, and less is multiplied past the
last key, value and token of odd sizes than with larger ones.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _chunk_product(
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
    key_tiles,
    TOKENS: tl.constexpr,
    KEYS: tl.constexpr,
    VALUES: tl.constexpr,
    SPLIT: tl.constexpr,
):
    """Tiles of one chunk are neighbours, so that its keys and values are read from memory once."""
    tile = tl.program_id(0) % key_tiles
    index = (tl.program_id(0) // key_tiles).to(tl.int64)
    head = index // num_chunks % num_heads
    begin = index % num_chunks * chunk_size
    first = index // num_chunks // num_heads * seq_len + begin
    d = tile * KEYS + tl.arange(0, KEYS)
    e = tl.program_id(1) * VALUES + tl.arange(0, VALUES)
    slope = tl.load(slopes_ptr + head)
    length = tl.minimum(seq_len - begin, chunk_size).to(tl.int32)
    acc = tl.zeros((KEYS, VALUES), tl.float32)
    for start in range(0, length, TOKENS):
        i = start + tl.arange(0, TOKENS)
        inside = i < length
        rows = (first + i) * num_heads + head
        key_mask = inside[None, :] & (d < head_dim)[:, None]
        keys = tl.load(key_ptr + rows[None, :] * head_dim + d[:, None], mask=key_mask, other=0.0)
        value_mask = inside[:, None] & (e < value_dim)[None, :]
        values = tl.load(value_ptr + rows[:, None] * value_dim + e[None, :], mask=value_mask, other=0.0)
        decay = tl.exp(-slope * tl.maximum(length - 1 - i, 0))
        decayed = keys.to(tl.float32) * decay[None, :]
        if SPLIT:
            high = decayed.to(values.dtype)
            low = (decayed - high.to(tl.float32)).to(values.dtype)
            acc = tl.dot(low, values, acc, input_precision=PRECISION)
            acc = tl.dot(high, values, acc, input_precision=PRECISION)
        else:
            acc = tl.dot(decayed, values, acc, input_precision=PRECISION)
    out = (index * head_dim + d)[:, None] * value_dim + e[None, :]
    tl.store(kv_ptr + out, acc, mask=(d < head_dim)[:, None] & (e < value_dim)[None, :])


def lightning_attn_kv_parallel(key, value, slopes, chunk_size, kv):
    batch, seq_len, num_heads, head_dim = key.shape
    value_dim = value.shape[3]
    num_chunks = kv.shape[2]
    split = key.element_size() == 2
    keys = max(16, min(64 if split else 32, triton.next_power_of_2(head_dim)))
    values = max(16, min(128 if split else 64, triton.next_power_of_2(value_dim)))
    key_tiles = triton.cdiv(head_dim, keys)
    grid = (batch * num_heads * num_chunks * key_tiles, triton.cdiv(value_dim, values))
    _chunk_product[grid](
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
        key_tiles,
        TOKENS=32 if split else 16,
        KEYS=keys,
        VALUES=values,
        SPLIT=split,
        num_warps=4,
        # One more than on AMD, which has 64 KiB of LDS: two steps are in flight, of 16-bit values three.
        num_stages=(3 if split else 2) + (0 if torch.version.hip else 1),
    )
