"""vLLM's vectors of the WY form, tuned by Triton: its copy of FLA's kernel.

It takes entries above the diagonal to be 0, where the task has anything. Kernels of ours clear them, and give chunks
that are none a place past the end; their time counts.
"""

import torch
import triton
import triton.language as tl
from vllm.third_party.flash_linear_attention.ops.wy_fast import recompute_w_u_fwd_kernel


@triton.jit
def past_the_end(chunks, kept, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seq = tl.load(chunks + 2 * i, mask=i < n, other=0)
    number = tl.load(chunks + 2 * i + 1, mask=i < n, other=0)
    tl.store(kept + 2 * i, tl.maximum(seq, 0), mask=i < n)
    tl.store(kept + 2 * i + 1, tl.where(seq < 0, 1 << 20, number), mask=i < n)


@triton.jit
def lower_triangle(a, lower, offsets, chunks, heads, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    chunk, head = tl.program_id(0), tl.program_id(1)
    seq, number = tl.load(chunks + 2 * chunk), tl.load(chunks + 2 * chunk + 1)
    begin, end = tl.load(offsets + seq), tl.load(offsets + seq + 1)
    row, column = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    token = begin + number * SIZE + row
    inside = (token < end) & (row < SIZE)
    place = (token.to(tl.int64) * heads + head)[:, None] * SIZE + column[None, :]
    mask = inside[:, None] & (column < SIZE)[None, :]
    values = tl.load(a + place, mask=mask & (column[None, :] <= row[:, None]), other=0.0)
    tl.store(lower + place, values, mask=mask)


def wy_fast_recompute_wu(key, value, beta, g, a, cu_seqlens, chunk_indices, w, u):
    tokens, key_heads, dim = key.shape
    _, heads, value_dim = value.shape
    chunks, size = chunk_indices.shape[0], a.shape[2]
    kept, lower = torch.empty_like(chunk_indices), torch.empty_like(a)
    past_the_end[(triton.cdiv(chunks, 256),)](chunk_indices, kept, chunks, 256)
    lower_triangle[(chunks, heads)](a, lower, cu_seqlens, kept, heads, size, triton.next_power_of_2(size))
    recompute_w_u_fwd_kernel[(chunks, heads)](
        k=key,
        v=value,
        beta=beta,
        w=w,
        u=u,
        A=lower,
        g=g,
        cu_seqlens=cu_seqlens,
        chunk_indices=kept,
        T=tokens,
        H=heads,
        Hg=key_heads,
        K=dim,
        V=value_dim,
        BT=size,
        BK=64,
        BV=64,
    )
