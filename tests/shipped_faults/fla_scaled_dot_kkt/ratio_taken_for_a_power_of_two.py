"""expect: wrong_result in heldout-31. Head mapping: key heads are found by a shift, as if the ratio of heads were a power of two."""

import torch
import triton
import triton.language as tl

# Of float32: matrix units multiply three pairs of TF32 on NVIDIA, float32 itself on AMD.
PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")


@triton.jit
def chunk_products(
    key_ptr,
    beta_ptr,
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    a_ptr,
    key_stride,
    num_key_heads,
    num_value_heads,
    head_dim,
    CHUNK: tl.constexpr,
    DIMS: tl.constexpr,
    GATED: tl.constexpr,
    GROUP_SHIFT: tl.constexpr,
):
    chunk = (tl.program_id(0) // num_value_heads).to(tl.int64)
    head = tl.program_id(0) % num_value_heads
    key_head = tl.minimum(head >> GROUP_SHIFT, num_key_heads - 1)
    seq = tl.load(chunk_indices_ptr + 2 * chunk)
    if seq >= 0:
        first = tl.load(chunk_indices_ptr + 2 * chunk + 1) * CHUNK
        begin = tl.load(cu_seqlens_ptr + seq).to(tl.int64)
        places = first + tl.arange(0, CHUNK)
        inside = begin + places < tl.load(cu_seqlens_ptr + seq + 1)
        tokens = begin + places

        products = tl.zeros((CHUNK, CHUNK), tl.float32)
        for start in range(0, head_dim, DIMS):
            dims = start + tl.arange(0, DIMS)
            offsets = (tokens * key_stride + key_head * head_dim)[:, None] + dims[None, :]
            key = tl.load(key_ptr + offsets, mask=inside[:, None] & (dims < head_dim)[None, :], other=0.0)
            products += tl.dot(key, tl.trans(key), input_precision=PRECISION)

        heads = tokens * num_value_heads + head
        beta = tl.load(beta_ptr + heads, mask=inside, other=0.0).to(tl.float32)
        products *= beta[:, None]
        if GATED:
            g = tl.load(g_ptr + heads, mask=inside, other=0.0)
            products *= tl.exp(g[:, None] - g[None, :])
        products = tl.where(places[:, None] > places[None, :], products, 0.0)
        columns = tl.arange(0, CHUNK)
        tl.store(a_ptr + heads[:, None] * CHUNK + columns[None, :], products, mask=inside[:, None])


def fla_scaled_dot_kkt(key, beta, g, cu_seqlens, chunk_indices, a):
    _, num_key_heads, head_dim = key.shape
    _, num_value_heads, chunk_size = a.shape
    chunk_products[(chunk_indices.shape[0] * num_value_heads,)](
        key,
        beta,
        g,
        cu_seqlens,
        chunk_indices,
        a,
        key.stride(0),
        num_key_heads,
        num_value_heads,
        head_dim,
        CHUNK=chunk_size,
        DIMS=32,
        GATED=g is not None,
        GROUP_SHIFT=(num_value_heads // num_key_heads).bit_length() - 1,
    )
