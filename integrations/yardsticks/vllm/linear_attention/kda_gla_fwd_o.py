"""vLLM's outputs of Kimi Delta Attention, tuned by Triton.

Its gates are of base 2: `exp` replaces its `exp2`. Its states are transposed, and it takes chunks that are none to
have a place past the end: kernels of ours do both first, and their time counts.
"""

import torch
import triton
import triton.language as tl
from vllm.third_party.flash_linear_attention.ops.kda import chunk_gla_fwd_kernel_o

exp2 = tl.exp


@triton.jit
def past_the_end(chunks, kept, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seq = tl.load(chunks + 2 * i, mask=i < n, other=0)
    number = tl.load(chunks + 2 * i + 1, mask=i < n, other=0)
    tl.store(kept + 2 * i, tl.maximum(seq, 0), mask=i < n)
    tl.store(kept + 2 * i + 1, tl.where(seq < 0, 1 << 20, number), mask=i < n)


@triton.jit
def transpose(states, turned, K, V, BLOCK: tl.constexpr):
    matrix = tl.program_id(0).to(tl.int64) * K * V
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    mask = (k < K)[:, None] & (v < V)[None, :]
    values = tl.load(states + matrix + k[:, None] * V + v[None, :], mask=mask)
    tl.store(turned + matrix + v[None, :] * K + k[:, None], values, mask=mask)


def kda_gla_fwd_o(query, value, g, scores, states, cu_seqlens, chunk_indices, sm_scale, out):
    tokens, heads, dim = query.shape
    chunks, value_dim = chunk_indices.shape[0], value.shape[2]
    kept, turned = torch.empty_like(chunk_indices), torch.empty_like(states)
    past_the_end[(triton.cdiv(chunks, 256),)](chunk_indices, kept, chunks, 256)
    transpose[(chunks * heads, triton.cdiv(dim, 64), triton.cdiv(value_dim, 64))](states, turned, dim, value_dim, 64)
    chunk_gla_fwd_kernel_o[lambda meta: (triton.cdiv(value_dim, meta["BV"]), chunks, heads)](
        q=query,
        v=value,
        g=g,
        h=turned,
        o=out,
        A=scores,
        cu_seqlens=cu_seqlens,
        chunk_indices=kept,
        scale=sm_scale,
        T=tokens,
        H=heads,
        K=dim,
        V=value_dim,
        BT=scores.shape[2],
    )
