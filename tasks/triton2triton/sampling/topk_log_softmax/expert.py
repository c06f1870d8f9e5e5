"""Log-probabilities of given tokens from one pass over the logits, every row cut into parts where rows are few.

A part keeps a running maximum and sum in each lane, so that no reduction stands in its loop; a second kernel joins the
parts of a row and looks its tokens up.
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096
ENOUGH_PROGRAMS = 2048
MOST_PARTS = 64


@triton.jit
def _sum_part(logits_ptr, lse_ptr, vocab_size, row_stride, part_size, BLOCK: tl.constexpr):
    """Log-sum-exp of one part of a row."""
    row = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * part_size
    end = tl.minimum(begin + part_size, vocab_size)
    peaks = tl.full((BLOCK,), -float("inf"), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(begin, end, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * row_stride + tokens, mask=tokens < end, other=-float("inf"))
        new_peaks = tl.maximum(peaks, x)
        # Where all so far is minus infinity, any finite number serves as the maximum.
        finite = tl.where(new_peaks == -float("inf"), 0.0, new_peaks)
        sums = sums * tl.exp(peaks - finite) + tl.exp(x - finite)
        peaks = new_peaks
    peak = tl.max(peaks, axis=0)
    finite = tl.where(peak == -float("inf"), 0.0, peak)
    total = tl.sum(sums * tl.exp(peaks - finite), axis=0)
    lse = tl.where(total > 0, finite + tl.log(tl.where(total > 0, total, 1.0)), -float("inf"))
    tl.store(lse_ptr + row * tl.num_programs(1) + tl.program_id(1), lse)


@triton.jit
def _look_up(
    logits_ptr,
    lse_ptr,
    token_ids_ptr,
    logprobs_ptr,
    row_stride,
    num_logprobs,
    parts,
    PARTS: tl.constexpr,
    WANTED: tl.constexpr,
):
    """Some tokens of one row."""
    row = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, PARTS)
    part_lse = tl.load(lse_ptr + row * parts + index, mask=index < parts, other=-float("inf"))
    peak = tl.max(part_lse, axis=0)
    lse = peak + tl.log(tl.sum(tl.exp(part_lse - peak), axis=0))
    entries = tl.program_id(1) * WANTED + tl.arange(0, WANTED)
    inside = entries < num_logprobs
    tokens = tl.load(token_ids_ptr + row * num_logprobs + entries, mask=inside, other=-1)
    x = tl.load(logits_ptr + row * row_stride + tokens, mask=tokens >= 0, other=-float("inf"))
    tl.store(logprobs_ptr + row * num_logprobs + entries, x - lse, mask=inside)


def topk_log_softmax(logits, token_ids, logprobs):
    num_reqs, vocab_size = logits.shape
    num_logprobs = token_ids.shape[1]
    row_stride = logits.stride(0)
    blocks = triton.cdiv(vocab_size, BLOCK)
    wanted_parts = max(1, min(blocks, triton.cdiv(ENOUGH_PROGRAMS, num_reqs), MOST_PARTS))
    part_size = triton.cdiv(blocks, wanted_parts) * BLOCK
    parts = triton.cdiv(vocab_size, part_size)
    lse = torch.empty((num_reqs, parts), dtype=torch.float32, device=logits.device)
    _sum_part[(num_reqs, parts)](logits, lse, vocab_size, row_stride, part_size, BLOCK=BLOCK, num_warps=8)
    width = min(256, triton.next_power_of_2(num_logprobs))
    _look_up[(num_reqs, triton.cdiv(num_logprobs, width))](
        logits,
        lse,
        token_ids,
        logprobs,
        row_stride,
        num_logprobs,
        parts,
        PARTS=triton.next_power_of_2(parts),
        WANTED=width,
        num_warps=1,
    )
