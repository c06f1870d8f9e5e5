"""Products within chunks: one program per chunk, group and tile of 64 by 64 products, or 32 by 32 for float32."""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def product_tile(
    a_ptr,
    b_ptr,
    out_ptr,
    token_stride,
    seq_len,
    state_dim,
    chunk_size,
    CAUSAL: tl.constexpr,
    TILE: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    num_chunks = tl.cdiv(seq_len, chunk_size)
    row = (tl.program_id(0) // num_chunks).to(tl.int64)
    chunk = tl.program_id(0) % num_chunks
    group = tl.program_id(1)
    num_groups = tl.num_programs(1)
    tiles = tl.cdiv(chunk_size, TILE)
    m = tl.program_id(2) // tiles * TILE + tl.arange(0, TILE)
    k = tl.program_id(2) % tiles * TILE + tl.arange(0, TILE)
    length = tl.minimum(chunk_size, seq_len - chunk * chunk_size)
    first = row * seq_len + chunk * chunk_size
    a_rows = (first + m) * token_stride + group * state_dim
    b_rows = (first + k) * token_stride + group * state_dim

    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, state_dim, BLOCK_K):
        n = start + tl.arange(0, BLOCK_K)
        a_mask = (m < length)[:, None] & (n < state_dim)[None, :]
        a = tl.load(a_ptr + a_rows[:, None] + n[None, :], mask=a_mask, other=0.0)
        b_mask = (n < state_dim)[:, None] & (k < length)[None, :]
        b = tl.load(b_ptr + b_rows[None, :] + n[:, None], mask=b_mask, other=0.0)
        acc += tl.dot(a, b, input_precision=PRECISION)
    if CAUSAL:
        acc = tl.where(k[None, :] <= m[:, None], acc, 0.0)
    out_row = ((row * num_chunks + chunk) * num_groups + group) * chunk_size
    places = (out_row + m)[:, None] * chunk_size + k[None, :]
    tl.store(out_ptr + places, acc, mask=(m < chunk_size)[:, None] & (k < chunk_size)[None, :])


def ssd_bmm(a, b, causal, out):
    batch, seq_len, num_groups, state_dim = a.shape
    num_chunks, chunk_size = out.shape[1], out.shape[3]
    tile = 64 if a.element_size() == 2 and chunk_size > 32 else 32
    grid = (batch * num_chunks, num_groups, triton.cdiv(chunk_size, tile) * triton.cdiv(chunk_size, tile))
    # a and b are strided alike.
    product_tile[grid](a, b, out, a.stride(1), seq_len, state_dim, chunk_size, CAUSAL=causal, TILE=tile, BLOCK_K=32)
