"""vLLM's prefill attention. It takes lengths, which a kernel of ours computes from the offsets first.

The engine takes heads of values to be as long as those of keys: only such cases pass.
"""

import torch
import triton
import triton.language as tl
from vllm.v1.attention.ops.triton_prefill_attention import context_attention_fwd


def _prefer_narrow_kv_tile():
    """The engine asks whether the GPU is an RDNA3 or RDNA4."""
    return False


@triton.jit
def lengths_of(offsets, lengths, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(offsets + i, mask=i < n)
    end = tl.load(offsets + i + 1, mask=i < n)
    tl.store(lengths + i, end - begin, mask=i < n)


def flash_prefill_attention(query, key, value, cu_seqlens, sm_scale, causal, out):
    lengths = torch.empty(cu_seqlens.numel() - 1, dtype=torch.int32, device=query.device)
    lengths_of[(triton.cdiv(lengths.numel(), 128),)](cu_seqlens, lengths, lengths.numel(), 128)
    context_attention_fwd(query, key, value, out, cu_seqlens, lengths, query.shape[0], causal, sm_scale)
