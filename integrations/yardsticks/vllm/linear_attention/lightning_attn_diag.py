"""vLLM's lightning attention inside chunks. It wants heads before tokens, so inputs are copied, as in the engine.

A kernel of ours turns the output; its time counts.
"""

import torch
import triton
import triton.language as tl
from vllm.model_executor.layers.lightning_attn import _fwd_diag_kernel


@triton.jit
def heads_last(source, target, tokens, heads, DIM: tl.constexpr, BLOCK: tl.constexpr):
    row, dims = tl.program_id(0), tl.arange(0, BLOCK)
    head, token, batch = row % heads, row // heads % tokens, row // heads // tokens
    place = ((batch * heads + head).to(tl.int64) * tokens + token) * DIM
    values = tl.load(source + place + dims, mask=dims < DIM)
    tl.store(target + row.to(tl.int64) * DIM + dims, values, mask=dims < DIM)


def lightning_attn_diag(query, key, value, slopes, chunk_size, out):
    batch, tokens, heads, dim = query.shape
    value_dim = value.shape[3]
    chunks = triton.cdiv(tokens, chunk_size)
    turned = torch.empty((batch, heads, tokens, value_dim), dtype=out.dtype, device=out.device)
    _fwd_diag_kernel[(batch * heads * chunks, chunk_size // 32)](
        query.transpose(1, 2).contiguous(),
        key.transpose(1, 2).contiguous(),
        value.transpose(1, 2).contiguous(),
        turned,
        slopes,
        batch,
        heads,
        tokens,
        dim,
        value_dim,
        BLOCK=chunk_size,
        NUM_BLOCK=chunks,
        CBLOCK=32,
    )
    block = triton.next_power_of_2(value_dim)
    heads_last[(batch * tokens * heads,)](turned, out, tokens, heads, value_dim, block)
