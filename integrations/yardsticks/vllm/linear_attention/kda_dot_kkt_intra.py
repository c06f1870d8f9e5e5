"""vLLM's products inside sub-blocks of Kimi Delta Attention, tuned by Triton. `exp` replaces its `exp2` of the gates.

It leaves columns past the end of a sequence as they are, where the task has 0. Kernels of ours clear them, and give
chunks that are none a place past the end; their time counts. Sub-blocks are powers of 2.
"""

import torch
import triton
import triton.language as tl
from vllm.third_party.flash_linear_attention.ops.kda import chunk_kda_scaled_dot_kkt_fwd_kernel_intra_sub_intra

exp2 = tl.exp


@triton.jit
def past_the_end(chunks, kept, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seq = tl.load(chunks + 2 * i, mask=i < n, other=0)
    number = tl.load(chunks + 2 * i + 1, mask=i < n, other=0)
    tl.store(kept + 2 * i, tl.maximum(seq, 0), mask=i < n)
    tl.store(kept + 2 * i + 1, tl.where(seq < 0, 1 << 20, number), mask=i < n)


@triton.jit
def clear_last_sub_block(kk, qk, offsets, heads, SIZE: tl.constexpr, PART: tl.constexpr):
    """Clear a sequence's last sub-block if it is not full."""
    seq, head = tl.program_id(0), tl.program_id(1)
    begin, end = tl.load(offsets + seq), tl.load(offsets + seq + 1)
    in_chunk = (end - begin) % SIZE
    if in_chunk % PART:
        first = in_chunk // PART * PART
        row, column = tl.arange(0, PART), first + tl.arange(0, PART)
        token = end - in_chunk + first + row
        place = (token.to(tl.int64) * heads + head)[:, None] * SIZE + column[None, :]
        mask = (token < end)[:, None] & (column < SIZE)[None, :]
        tl.store(kk + place, 0.0, mask=mask)
        tl.store(qk + place, 0.0, mask=mask)


def kda_dot_kkt_intra(query, key, beta, g, cu_seqlens, chunk_indices, kk, qk, sub_block, sm_scale):
    tokens, heads, dim = key.shape
    chunks, size = chunk_indices.shape[0], kk.shape[2]
    kept = torch.empty_like(chunk_indices)
    past_the_end[(triton.cdiv(chunks, 256),)](chunk_indices, kept, chunks, 256)
    clear_last_sub_block[(cu_seqlens.numel() - 1, heads)](kk, qk, cu_seqlens, heads, size, sub_block)
    chunk_kda_scaled_dot_kkt_fwd_kernel_intra_sub_intra[(chunks, size // sub_block, heads)](
        q=query,
        k=key,
        g=g,
        beta=beta,
        A=kk,
        Aqk=qk,
        scale=sm_scale,
        cu_seqlens=cu_seqlens,
        chunk_indices=kept,
        T=tokens,
        H=heads,
        K=dim,
        BT=size,
        BC=sub_block,
        BK=max(triton.next_power_of_2(dim), 16),
    )
