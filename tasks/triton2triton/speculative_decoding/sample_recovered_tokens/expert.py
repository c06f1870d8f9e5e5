"""Recovered tokens with every row of probabilities cut into parts; a second kernel takes the best of the parts.

Places of one request are neighbours in the grid, so that their noise comes out of the cache.
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048
ENOUGH_PROGRAMS = 4096
REQS = 1024


@triton.jit
def _best_of_part(
    draft_token_ids_ptr,
    draft_probs_ptr,
    target_probs_ptr,
    noise_ptr,
    cu_num_draft_tokens_ptr,
    scores_ptr,
    tokens_ptr,
    num_reqs,
    vocab_size,
    part_size,
    REQS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The best token of one part of the vocabulary for one place, and its score."""
    place = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * part_size
    end = tl.minimum(begin + part_size, vocab_size)
    ended = tl.zeros((REQS,), tl.int32)
    for start in range(0, num_reqs, REQS):
        reqs = start + tl.arange(0, REQS)
        ends = tl.load(cu_num_draft_tokens_ptr + 1 + reqs, mask=reqs < num_reqs, other=2147483647)
        ended += (ends <= place).to(tl.int32)
    req = tl.sum(ended, axis=0).to(tl.int64)

    target_ptr = target_probs_ptr + place * vocab_size
    noise_row_ptr = noise_ptr + req * vocab_size
    lanes = tl.arange(0, BLOCK)
    best_score = tl.full((BLOCK,), -1.0, tl.float32)
    best_token = begin + lanes
    for start in range(begin, end, BLOCK):
        tokens = start + lanes
        inside = tokens < end
        weight = tl.load(target_ptr + tokens, mask=inside, other=0.0)
        noise = tl.load(noise_row_ptr + tokens, mask=inside, other=1.0)
        if draft_probs_ptr is not None:
            weight -= tl.load(draft_probs_ptr + place * vocab_size + tokens, mask=inside, other=0.0)
        else:
            weight = tl.where(tokens == tl.load(draft_token_ids_ptr + place), 0.0, weight)
        score = tl.where(inside, tl.maximum(weight, 0.0) / noise, -1.0)
        better = score > best_score
        best_score = tl.where(better, score, best_score)
        best_token = tl.where(better, tokens, best_token)
    winner = tl.argmax(best_score, axis=0)
    result = place * tl.num_programs(1) + tl.program_id(1)
    tl.store(scores_ptr + result, tl.max(best_score, axis=0))
    tl.store(tokens_ptr + result, tl.sum(tl.where(lanes == winner, best_token, 0), axis=0))


@triton.jit
def _best_of_parts(scores_ptr, tokens_ptr, recovered_token_ids_ptr, parts, PARTS: tl.constexpr):
    """The best token of one place."""
    place = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, PARTS)
    scores = tl.load(scores_ptr + place * parts + index, mask=index < parts, other=-2.0)
    winner = tl.argmax(scores, axis=0)
    tl.store(recovered_token_ids_ptr + place, tl.load(tokens_ptr + place * parts + winner))


def sample_recovered_tokens(
    draft_token_ids, draft_probs, target_probs, noise, cu_num_draft_tokens, recovered_token_ids
):
    num_draft_tokens, vocab_size = target_probs.shape
    blocks = triton.cdiv(vocab_size, BLOCK)
    wanted = max(1, min(triton.cdiv(blocks, 4), triton.cdiv(ENOUGH_PROGRAMS, num_draft_tokens)))
    part_size = triton.cdiv(blocks, wanted) * BLOCK
    parts = triton.cdiv(vocab_size, part_size)
    scores = torch.empty((num_draft_tokens, parts), dtype=torch.float32, device=target_probs.device)
    tokens = torch.empty((num_draft_tokens, parts), dtype=torch.int32, device=target_probs.device)
    _best_of_part[(num_draft_tokens, parts)](
        draft_token_ids,
        draft_probs,
        target_probs,
        noise,
        cu_num_draft_tokens,
        scores,
        tokens,
        noise.shape[0],
        vocab_size,
        part_size,
        REQS=REQS,
        BLOCK=BLOCK,
        num_warps=8,
    )
    width = triton.next_power_of_2(parts)
    _best_of_parts[(num_draft_tokens,)](scores, tokens, recovered_token_ids, parts, PARTS=width, num_warps=1)
