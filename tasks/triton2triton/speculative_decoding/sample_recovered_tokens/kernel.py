"""Recovered tokens: one program per draft token finds its request, then walks through the vocabulary."""

import triton
import triton.language as tl


@triton.jit
def recover_token(
    draft_token_ids_ptr,
    draft_probs_ptr,
    target_probs_ptr,
    noise_ptr,
    cu_num_draft_tokens_ptr,
    recovered_token_ids_ptr,
    num_reqs,
    vocab_size,
    REQS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    # The requests that end at or before this place come before its own.
    req = tl.full((), 0, tl.int64)
    for start in range(0, num_reqs, REQS):
        reqs = start + tl.arange(0, REQS)
        ends = tl.load(cu_num_draft_tokens_ptr + 1 + reqs, mask=reqs < num_reqs, other=2147483647)
        req += tl.sum((ends <= place).to(tl.int64), axis=0)

    draft = tl.load(draft_token_ids_ptr + place)
    lanes = tl.arange(0, BLOCK)
    # Scores of 0 never win, neither those of tokens past the vocabulary nor those of weights below 0.
    best_score = tl.zeros((BLOCK,), tl.float32)
    best_token = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + lanes
        inside = tokens < vocab_size
        weight = tl.load(target_probs_ptr + place * vocab_size + tokens, mask=inside, other=0.0)
        if draft_probs_ptr is not None:
            weight -= tl.load(draft_probs_ptr + place * vocab_size + tokens, mask=inside, other=0.0)
        else:
            weight = tl.where(tokens == draft, 0.0, weight)
        noise = tl.load(noise_ptr + req * vocab_size + tokens, mask=inside, other=1.0)
        score = weight / noise
        better = score > best_score
        best_score = tl.where(better, score, best_score)
        best_token = tl.where(better, tokens, best_token)
    winner = tl.argmax(best_score, axis=0)
    tl.store(recovered_token_ids_ptr + place, tl.sum(tl.where(lanes == winner, best_token, 0), axis=0))


def sample_recovered_tokens(
    draft_token_ids, draft_probs, target_probs, noise, cu_num_draft_tokens, recovered_token_ids
):
    num_draft_tokens, vocab_size = target_probs.shape
    recover_token[(num_draft_tokens,)](
        draft_token_ids,
        draft_probs,
        target_probs,
        noise,
        cu_num_draft_tokens,
        recovered_token_ids,
        noise.shape[0],
        vocab_size,
        REQS=64,
        BLOCK=1024,
    )
