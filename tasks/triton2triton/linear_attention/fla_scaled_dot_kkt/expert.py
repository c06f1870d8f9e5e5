"""Beta-scaled, gated K Kᵀ of a chunk: one program per chunk and key head, one product for all its value heads."""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
ENOUGH_PROGRAMS = 2048


@triton.jit
def _chunk_products(
    key_ptr,
    beta_ptr,
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    a_ptr,
    key_stride,
    num_key_heads,
    num_value_heads,
    group,
    heads_each,
    HEAD_DIM: tl.constexpr,
    CHUNK: tl.constexpr,
    DIMS: tl.constexpr,
    GATED: tl.constexpr,
):
    """Value heads of one key head are dealt out `heads_each` to a program."""
    chunk = tl.program_id(0).to(tl.int64)
    key_head = tl.program_id(1)
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq >= 0:
        begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + 2 * chunk + 1) * CHUNK
        length = tl.load(cu_seqlens_ptr + seq + 1) - begin
        rows = tl.arange(0, CHUNK)
        inside = rows < length
        tokens = begin.to(tl.int64) + rows
        dims = tl.arange(0, DIMS)
        products = tl.zeros((CHUNK, CHUNK), tl.float32)
        key_rows = tokens * key_stride + key_head * HEAD_DIM
        for start in range(0, HEAD_DIM, DIMS):
            mask = inside[:, None] & (start + dims < HEAD_DIM)[None, :]
            key = tl.load(key_ptr + key_rows[:, None] + (start + dims)[None, :], mask=mask, other=0.0)
            products = tl.dot(key, tl.trans(key), products, input_precision=PRECISION)
        below = rows[:, None] > rows[None, :]
        first = tl.program_id(2) * heads_each
        for index in range(first, tl.minimum(first + heads_each, group)):
            heads = tokens * num_value_heads + key_head * group + index
            scaled = products * tl.load(beta_ptr + heads, mask=inside, other=0.0).to(tl.float32)[:, None]
            if GATED:
                g = tl.load(g_ptr + heads, mask=inside, other=0.0)
                scaled *= tl.exp(tl.where(below, g[:, None] - g[None, :], 0.0))
            scaled = tl.where(below, scaled, 0.0)
            tl.store(a_ptr + heads[:, None] * CHUNK + rows[None, :], scaled, mask=inside[:, None])


def fla_scaled_dot_kkt(key, beta, g, cu_seqlens, chunk_indices, a):
    _, num_key_heads, head_dim = key.shape
    _, num_value_heads, chunk_size = a.shape
    num_chunks = chunk_indices.shape[0]
    group = num_value_heads // num_key_heads
    heads_each = max(1, min(group, num_chunks * num_value_heads // ENOUGH_PROGRAMS))
    wide = key.element_size() == 4  # wgmma takes four warps; two that multiply TF32 would need all of their registers
    dims = min(32 if wide else 64, max(16, triton.next_power_of_2(head_dim)))
    _chunk_products[(num_chunks, num_key_heads, triton.cdiv(group, heads_each))](
        key,
        beta,
        g,
        cu_seqlens,
        chunk_indices,
        a,
        key.stride(0),
        num_key_heads,
        num_value_heads,
        group,
        heads_each,
        HEAD_DIM=head_dim,
        CHUNK=chunk_size,
        DIMS=dims,
        GATED=g is not None,
        num_warps=(4 if wide or g is None else 2) * max(1, chunk_size // 64),
        num_stages=3,
    )
