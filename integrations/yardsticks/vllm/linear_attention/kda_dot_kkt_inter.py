"""vLLM's products between sub-blocks of Kimi Delta Attention, tuned by Triton. `exp` replaces its `exp2` of the gates.

A kernel of ours gives chunks that are none a place past the end; its time counts. Sub-blocks are powers of 2 from 16.
"""

import torch
import triton
import triton.language as tl
from vllm.third_party.flash_linear_attention.ops.kda import chunk_kda_scaled_dot_kkt_fwd_kernel_intra_sub_inter

exp2 = tl.exp


@triton.jit
def past_the_end(chunks, kept, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seq = tl.load(chunks + 2 * i, mask=i < n, other=0)
    number = tl.load(chunks + 2 * i + 1, mask=i < n, other=0)
    tl.store(kept + 2 * i, tl.maximum(seq, 0), mask=i < n)
    tl.store(kept + 2 * i + 1, tl.where(seq < 0, 1 << 20, number), mask=i < n)


def kda_dot_kkt_inter(query, key, beta, g, cu_seqlens, chunk_indices, kk, qk, sub_block, sm_scale):
    tokens, heads, dim = key.shape
    chunks, size = chunk_indices.shape[0], kk.shape[2]
    parts = size // sub_block
    kept = torch.empty_like(chunk_indices)
    past_the_end[(triton.cdiv(chunks, 256),)](chunk_indices, kept, chunks, 256)
    chunk_kda_scaled_dot_kkt_fwd_kernel_intra_sub_inter[(chunks, parts * parts, heads)](
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
        NC=parts,
    )
