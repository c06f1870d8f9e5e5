"""vLLM's identity experts, with the launch parameters of its wrapper, which asks for a multiple of 256 values.

A kernel of ours clears the weights of experts that compute, where the engine calls PyTorch.
"""

import torch
import triton
import triton.language as tl
from vllm.model_executor.layers.fused_moe.fused_moe import compute_identity_kernel


@triton.jit
def identity_weights(weights, ids, experts, kept, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(ids + i, mask=i < n, other=0) >= experts
    tl.store(kept + i, tl.load(weights + i, mask=(i < n) & chosen, other=0.0), mask=i < n)


def compute_identity(x, topk_weights, topk_ids, num_experts, out):
    tokens, hidden = x.shape
    assert hidden % 256 == 0, "the engine covers multiples of 256 values"
    kept = torch.empty_like(topk_weights)
    n = kept.numel()
    identity_weights[(triton.cdiv(n, 1024),)](topk_weights, topk_ids, num_experts, kept, n, 1024)
    compute_identity_kernel[(tokens * (hidden // 256),)](
        topk_ids.shape[1], x, kept, tokens, out, hidden, kept.stride(0), BLOCK_SIZE=256
    )
