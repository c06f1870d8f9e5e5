"""expect: wrong_result in heldout-15. Special values: noise below 1e-5 is raised to it.

Recovered tokens: one program per draft token and block of the vocabulary, then one per draft token for the best.
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def best_of_block(
    draft_token_ids_ptr,
    draft_probs_ptr,
    target_probs_ptr,
    noise_ptr,
    cu_num_draft_tokens_ptr,
    scores_ptr,
    tokens_ptr,
    num_reqs,
    vocab_size,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    # The first request that ends after this place, by bisection.
    req = tl.full((), 0, tl.int64)
    upper = tl.full((), 0, tl.int64) + num_reqs
    for _ in range(STEPS):
        middle = (req + upper) // 2
        ended = tl.load(cu_num_draft_tokens_ptr + middle + 1) <= place
        req = tl.where(ended, middle + 1, req)
        upper = tl.where(ended, upper, middle)

    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = tokens < vocab_size
    weight = tl.load(target_probs_ptr + place * vocab_size + tokens, mask=inside, other=0.0)
    if draft_probs_ptr is not None:
        weight -= tl.load(draft_probs_ptr + place * vocab_size + tokens, mask=inside, other=0.0)
    else:
        weight = tl.where(tokens == tl.load(draft_token_ids_ptr + place), 0.0, weight)
    noise = tl.load(noise_ptr + req * vocab_size + tokens, mask=inside, other=1.0)
    noise = tl.maximum(noise, 1e-5)  # never divide by 0
    # Neither a token past the vocabulary nor a weight below 0 is better than a weight of 0.
    score, lane = tl.max(tl.where(inside, tl.maximum(weight, 0.0) / noise, -1.0), axis=0, return_indices=True)
    result = place * tl.num_programs(1) + tl.program_id(1)
    tl.store(scores_ptr + result, score)
    tl.store(tokens_ptr + result, tl.program_id(1) * BLOCK + lane)


@triton.jit
def best_of_blocks(scores_ptr, tokens_ptr, recovered_token_ids_ptr, n_blocks, BLOCKS: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    blocks = tl.arange(0, BLOCKS)
    scores = tl.load(scores_ptr + place * n_blocks + blocks, mask=blocks < n_blocks, other=-1.0)
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
    best_of_block[(num_draft_tokens, n_blocks)](
        draft_token_ids,
        draft_probs,
        target_probs,
        noise,
        cu_num_draft_tokens,
        scores,
        tokens,
        num_reqs,
        vocab_size,
        STEPS=num_reqs.bit_length(),
        BLOCK=BLOCK,
    )
    best_of_blocks[(num_draft_tokens,)](
        scores, tokens, recovered_token_ids, n_blocks, BLOCKS=triton.next_power_of_2(n_blocks)
    )
