"""Gumbel-max sampling: one program per request and block of the vocabulary, then one per request over its blocks."""

import torch
import triton
import triton.language as tl

BLOCK = 1024
# 2**-32; rand can return 0.
LEAST_UNIFORM = tl.constexpr(2.3283064365386963e-10)


@triton.jit
def best_of_block(
    logits_ptr,
    temperature_ptr,
    seeds_ptr,
    idx_mapping_ptr,
    positions_ptr,
    scores_ptr,
    tokens_ptr,
    vocab_size,
    APPLY_TEMPERATURE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    slot = tl.load(idx_mapping_ptr + req)
    temperature = tl.load(temperature_ptr + slot)
    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    score = tl.load(logits_ptr + req * vocab_size + tokens, mask=tokens < vocab_size, other=-float("inf"))
    if temperature != 0.0:
        position = tl.load(positions_ptr + req).to(tl.int32)
        key = tl.randint(tl.load(seeds_ptr + slot), position).to(tl.int64) & 0xFFFFFFFF
        # The second logarithm's argument is positive: the greatest number that rand returns is below 1.
        uniform = tl.maximum(tl.rand(key, tokens), LEAST_UNIFORM)
        noise = -tl.log(-tl.log(uniform))
        if APPLY_TEMPERATURE:
            score = score / temperature
        score += noise
    place = req * tl.num_programs(1) + tl.program_id(1)
    best_score, best_lane = tl.max(score, axis=0, return_indices=True)
    tl.store(scores_ptr + place, best_score)
    tl.store(tokens_ptr + place, tl.program_id(1) * BLOCK + best_lane)


@triton.jit
def best_of_blocks(scores_ptr, tokens_ptr, sampled_ptr, n_blocks, BLOCKS: tl.constexpr):
    req = tl.program_id(0).to(tl.int64)
    blocks = tl.arange(0, BLOCKS)
    scores = tl.load(scores_ptr + req * n_blocks + blocks, mask=blocks < n_blocks, other=-float("inf"))
    winner = tl.argmax(scores, axis=0)
    tl.store(sampled_ptr + req, tl.load(tokens_ptr + req * n_blocks + winner).to(tl.int64))


def gumbel_sample(logits, temperature, seeds, idx_mapping, positions, apply_temperature, sampled):
    num_reqs, vocab_size = logits.shape
    n_blocks = triton.cdiv(vocab_size, BLOCK)
    scores = torch.empty((num_reqs, n_blocks), dtype=torch.float32, device=logits.device)
    tokens = torch.empty((num_reqs, n_blocks), dtype=torch.int32, device=logits.device)
    best_of_block[(num_reqs, n_blocks)](
        logits,
        temperature,
        seeds,
        idx_mapping,
        positions,
        scores,
        tokens,
        vocab_size,
        APPLY_TEMPERATURE=apply_temperature,
        BLOCK=BLOCK,
    )
    best_of_blocks[(num_reqs,)](scores, tokens, sampled, n_blocks, BLOCKS=triton.next_power_of_2(n_blocks))
