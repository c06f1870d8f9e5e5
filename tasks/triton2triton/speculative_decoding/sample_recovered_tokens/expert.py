"""Recovered tokens with probabilities in flight while the request is looked up; two warps for 1024 tokens.

The baseline bisects the request ends first: up to 12 dependent loads, in which no probability moves. Here target and
draft probabilities are loaded before, in eight 16-byte loads of a thread (32 lanes to a warp). Only the noise waits
for the request. A thread has 16 tokens (eight where a warp has 64 lanes), twice as many as in the baseline, so that
half as many threads bisect and reduce. One warp finds the best block. There are as many programs as the baseline has.
Places of one request are neighbours in the grid, so that their noise comes out of the cache.
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _best_of_block(
    draft_token_ids_ptr,
    draft_probs_ptr,
    target_probs_ptr,
    noise_ptr,
    cu_num_draft_tokens_ptr,
    scores_ptr,
    tokens_ptr,
    num_reqs,
    vocab_size,
    steps,
    BLOCK: tl.constexpr,
):
    """The best token of one block of the vocabulary for one place, and its score."""
    place = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * BLOCK
    tokens = first + tl.arange(0, BLOCK)
    inside = tokens < vocab_size
    weight = tl.load(target_probs_ptr + place * vocab_size + tokens, mask=inside, other=0.0)
    if draft_probs_ptr is not None:
        draft = tl.load(draft_probs_ptr + place * vocab_size + tokens, mask=inside, other=0.0)
    else:
        draft = tl.load(draft_token_ids_ptr + place)

    # A loop of known length would be unrolled, and the loads above would then be moved behind it.
    req = tl.full((), 0, tl.int32)
    upper = tl.full((), 0, tl.int32) + num_reqs
    for _ in range(steps):
        middle = (req + upper) // 2
        ended = tl.load(cu_num_draft_tokens_ptr + middle + 1) <= place
        req = tl.where(ended, middle + 1, req)
        upper = tl.where(ended, upper, middle)

    noise = tl.load(noise_ptr + req.to(tl.int64) * vocab_size + tokens, mask=inside, other=1.0)
    # Only now are the probabilities waited for.
    if draft_probs_ptr is not None:
        weight -= draft
    else:
        weight = tl.where(tokens == draft, 0.0, weight)
    score, lane = tl.max(tl.where(inside, tl.maximum(weight, 0.0) / noise, -1.0), axis=0, return_indices=True)
    result = place * tl.num_programs(1) + tl.program_id(1)
    tl.store(scores_ptr + result, score)
    tl.store(tokens_ptr + result, first + lane)


@triton.jit
def _best_of_blocks(scores_ptr, tokens_ptr, recovered_token_ids_ptr, n_blocks, BLOCKS: tl.constexpr):
    """The best token of one place."""
    place = tl.program_id(0).to(tl.int64)
    blocks = tl.arange(0, BLOCKS)
    scores = tl.load(scores_ptr + place * n_blocks + blocks, mask=blocks < n_blocks, other=-2.0)
    winner = tl.argmax(scores, axis=0)
    tl.store(recovered_token_ids_ptr + place, tl.load(tokens_ptr + place * n_blocks + winner))


def sample_recovered_tokens(
    draft_token_ids, draft_probs, target_probs, noise, cu_num_draft_tokens, recovered_token_ids
):
    num_draft_tokens, vocab_size = target_probs.shape
    num_reqs = noise.shape[0]
    n_blocks = triton.cdiv(vocab_size, BLOCK)
    scores = torch.empty((num_draft_tokens, n_blocks), dtype=torch.float32, device=noise.device)
    tokens = torch.empty((num_draft_tokens, n_blocks), dtype=torch.int32, device=noise.device)
    _best_of_block[(num_draft_tokens, n_blocks)](
        draft_token_ids,
        draft_probs,
        target_probs,
        noise,
        cu_num_draft_tokens,
        scores,
        tokens,
        num_reqs,
        vocab_size,
        num_reqs.bit_length(),
        BLOCK=BLOCK,
        num_warps=2,
    )
    width = triton.next_power_of_2(n_blocks)
    _best_of_blocks[(num_draft_tokens,)](scores, tokens, recovered_token_ids, n_blocks, BLOCKS=width, num_warps=1)
