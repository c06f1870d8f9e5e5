"""vLLM's log-probabilities of given tokens, with the launch parameters of its wrapper.

The engine knows no id of -1. Kernels of ours put 0 in its place before, and minus infinity after; their time counts.
"""

import torch
import triton
import triton.language as tl
from vllm.v1.worker.gpu.sample.logprob import _MAX_TOPK_BLOCK, _topk_log_softmax_kernel


@triton.jit
def known_ids(token_ids, known, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(known + i, tl.maximum(tl.load(token_ids + i, mask=i < n, other=0), 0), mask=i < n)


@triton.jit
def no_token(token_ids, logprobs, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    none = tl.load(token_ids + i, mask=i < n, other=0) < 0
    tl.store(logprobs + i, tl.full((BLOCK,), -float("inf"), tl.float32), mask=(i < n) & none)


def topk_log_softmax(logits, token_ids, logprobs):
    (rows, vocab), count = logits.shape, token_ids.shape[1]
    known = torch.empty_like(token_ids)
    grid = (triton.cdiv(token_ids.numel(), 256),)
    known_ids[grid](token_ids, known, token_ids.numel(), 256)
    _topk_log_softmax_kernel[(rows,)](
        logprobs,
        logits,
        logits.stride(0),
        known,
        known.stride(0),
        count,
        vocab,
        BLOCK_SIZE=1024,
        TOPK_BLOCK_SIZE=min(triton.next_power_of_2(count), _MAX_TOPK_BLOCK),
    )
    no_token[grid](token_ids, logprobs, token_ids.numel(), 256)
