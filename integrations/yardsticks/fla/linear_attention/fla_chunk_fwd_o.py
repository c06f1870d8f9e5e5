"""FLA's outputs of chunks, tuned by Triton. Its gates are of base 2.

A kernel of ours converts the gates, and another gives chunks that are none a place past the end; their time counts.
"""

import torch
import triton
import triton.language as tl
from fla.ops.common.chunk_o import chunk_fwd_kernel_o


@triton.jit
def to_base_two(g, scaled, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(scaled + i, tl.load(g + i, mask=i < n) * 1.4426950408889634, mask=i < n)


@triton.jit
def past_the_end(chunks, kept, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seq = tl.load(chunks + 2 * i, mask=i < n, other=0)
    number = tl.load(chunks + 2 * i + 1, mask=i < n, other=0)
    tl.store(kept + 2 * i, tl.maximum(seq, 0), mask=i < n)
    tl.store(kept + 2 * i + 1, tl.where(seq < 0, 1 << 20, number), mask=i < n)


def fla_chunk_fwd_o(query, key, value, states, g, cu_seqlens, chunk_indices, chunk_size, sm_scale, out):
    tokens, key_heads, dim = query.shape
    _, heads, value_dim = value.shape
    chunks = chunk_indices.shape[0]
    kept = torch.empty_like(chunk_indices)
    past_the_end[(triton.cdiv(chunks, 256),)](chunk_indices, kept, chunks, 256)
    if g is not None:
        scaled = torch.empty_like(g)
        to_base_two[(triton.cdiv(g.numel(), 1024),)](g, scaled, g.numel(), 1024)
        g = scaled
    chunk_fwd_kernel_o[lambda meta: (triton.cdiv(value_dim, meta["BV"]) * chunks, heads)](
        q=query,
        k=key,
        v=value,
        h=states,
        g=g,
        g_gamma=None,
        o=out,
        cu_seqlens=cu_seqlens,
        chunk_indices=kept,
        scale=sm_scale,
        T=tokens,
        H=key_heads,
        HV=heads,
        K=dim,
        V=value_dim,
        BT=chunk_size,
        STATE_V_FIRST=False,
    )
