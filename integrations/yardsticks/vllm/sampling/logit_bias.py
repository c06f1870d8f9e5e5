"""vLLM's allow-lists, biases and least lengths.

The engine compares the position after the one sampled with the least length. A kernel of ours moves positions back
by one, and its time counts.
"""

import torch
import triton
import triton.language as tl
from vllm.v1.worker.gpu.sample.logit_bias import apply_logit_bias


@triton.jit
def one_before(positions, moved, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(moved + i, tl.load(positions + i, mask=i < n, other=0) - 1, mask=i < n)


def logit_bias(
    logits,
    allowed_token_ids,
    num_allowed,
    bias_token_ids,
    bias,
    num_bias,
    stop_token_ids,
    num_stop,
    min_lens,
    idx_mapping,
    positions,
):
    moved = torch.empty_like(positions)
    one_before[(triton.cdiv(positions.numel(), 256),)](positions, moved, positions.numel(), 256)
    apply_logit_bias(
        logits,
        idx_mapping,
        moved,
        num_allowed,
        allowed_token_ids,
        num_bias,
        bias_token_ids,
        bias,
        min_lens,
        num_stop,
        num_stop,
        stop_token_ids,
    )
