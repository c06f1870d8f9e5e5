"""Gumbel-max sampling with every row cut into parts, so that also a few requests fill the device.

A part leaves its best token and score; a second kernel takes the best of them.
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024
ENOUGH_PROGRAMS = 4096
LEAST_BLOCKS = 4
LEAST_UNIFORM = tl.constexpr(2.3283064365386963e-10)


@triton.jit
def _best_of_part(
    logits_ptr,
    temperature_ptr,
    seeds_ptr,
    idx_mapping_ptr,
    positions_ptr,
    scores_ptr,
    tokens_ptr,
    vocab_size,
    part_size,
    APPLY_TEMPERATURE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The best token of one part of a row and its score."""
    req = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * part_size
    end = tl.minimum(begin + part_size, vocab_size)
    slot = tl.load(idx_mapping_ptr + req)
    temperature = tl.load(temperature_ptr + slot)
    row_ptr = logits_ptr + req * vocab_size
    lanes = tl.arange(0, BLOCK)
    best_score = tl.full((BLOCK,), -float("inf"), tl.float32)
    best_token = begin + lanes
    if temperature == 0.0:
        for start in range(begin, end, BLOCK):
            tokens = start + lanes
            score = tl.load(row_ptr + tokens, mask=tokens < end, other=-float("inf"))
            better = score > best_score
            best_score = tl.where(better, score, best_score)
            best_token = tl.where(better, tokens, best_token)
    else:
        scale = 1.0 / temperature if APPLY_TEMPERATURE else 1.0
        position = tl.load(positions_ptr + req).to(tl.int32)
        key = tl.randint(tl.load(seeds_ptr + slot), position).to(tl.int64) & 0xFFFFFFFF
        for start in range(begin, end, BLOCK):
            tokens = start + lanes
            x = tl.load(row_ptr + tokens, mask=tokens < end, other=-float("inf"))
            uniform = tl.maximum(tl.rand(key, tokens), LEAST_UNIFORM)
            score = x * scale - tl.log(-tl.log(uniform))
            better = score > best_score
            best_score = tl.where(better, score, best_score)
            best_token = tl.where(better, tokens, best_token)
    peak = tl.max(best_score, axis=0)
    winner = tl.argmax(best_score, axis=0)
    place = req * tl.num_programs(1) + tl.program_id(1)
    tl.store(scores_ptr + place, peak)
    tl.store(tokens_ptr + place, tl.sum(tl.where(lanes == winner, best_token, 0), axis=0))


@triton.jit
def _best_of_parts(scores_ptr, tokens_ptr, sampled_ptr, parts, PARTS: tl.constexpr):
    """The best token of one row."""
    req = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, PARTS)
    scores = tl.load(scores_ptr + req * parts + index, mask=index < parts, other=-float("inf"))
    winner = tl.argmax(scores, axis=0)
    tl.store(sampled_ptr + req, tl.load(tokens_ptr + req * parts + winner).to(tl.int64))


def gumbel_sample(logits, temperature, seeds, idx_mapping, positions, apply_temperature, sampled):
    num_reqs, vocab_size = logits.shape
    blocks = triton.cdiv(vocab_size, BLOCK)
    wanted = max(1, min(triton.cdiv(blocks, LEAST_BLOCKS), triton.cdiv(ENOUGH_PROGRAMS, num_reqs)))
    part_size = triton.cdiv(blocks, wanted) * BLOCK
    parts = triton.cdiv(vocab_size, part_size)
    scores = torch.empty((num_reqs, parts), dtype=torch.float32, device=logits.device)
    tokens = torch.empty((num_reqs, parts), dtype=torch.int32, device=logits.device)
    _best_of_part[(num_reqs, parts)](
        logits,
        temperature,
        seeds,
        idx_mapping,
        positions,
        scores,
        tokens,
        vocab_size,
        part_size,
        APPLY_TEMPERATURE=apply_temperature,
        BLOCK=BLOCK,
        num_warps=4,
    )
    width = triton.next_power_of_2(parts)
    _best_of_parts[(num_reqs,)](scores, tokens, sampled, parts, PARTS=width, num_warps=1)
