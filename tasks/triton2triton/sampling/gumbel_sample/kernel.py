"""Gumbel-max sampling: one program per request walks through the vocabulary."""

import triton
import triton.language as tl

# 2**-32; rand can return 0.
LEAST_UNIFORM = tl.constexpr(2.3283064365386963e-10)


@triton.jit
def sample_request(
    logits_ptr,
    temperature_ptr,
    seeds_ptr,
    idx_mapping_ptr,
    positions_ptr,
    sampled_ptr,
    vocab_size,
    APPLY_TEMPERATURE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req)
    temperature = tl.load(temperature_ptr + slot)
    position = tl.load(positions_ptr + req).to(tl.int32)
    key = tl.randint(tl.load(seeds_ptr + slot), position).to(tl.int64) & 0xFFFFFFFF
    lanes = tl.arange(0, BLOCK)
    best_score = tl.full((BLOCK,), -float("inf"), tl.float32)
    best_token = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocab_size, BLOCK):
        tokens = start + lanes
        score = tl.load(logits_ptr + req * vocab_size + tokens, mask=tokens < vocab_size, other=-float("inf"))
        if temperature != 0.0:
            # The second logarithm's argument is positive: the greatest number that rand returns is below 1.
            uniform = tl.maximum(tl.rand(key, tokens), LEAST_UNIFORM)
            noise = -tl.log(-tl.log(uniform))
            if APPLY_TEMPERATURE:
                score = score / temperature
            score += noise
        better = score > best_score
        best_score = tl.where(better, score, best_score)
        best_token = tl.where(better, tokens, best_token)
    winner = tl.argmax(best_score, axis=0)
    token = tl.sum(tl.where(lanes == winner, best_token, 0), axis=0)
    tl.store(sampled_ptr + req, token.to(tl.int64))


def gumbel_sample(logits, temperature, seeds, idx_mapping, positions, apply_temperature, sampled):
    num_reqs, vocab_size = logits.shape
    sample_request[(num_reqs,)](
        logits,
        temperature,
        seeds,
        idx_mapping,
        positions,
        sampled,
        vocab_size,
        APPLY_TEMPERATURE=apply_temperature,
        BLOCK=1024,
    )
