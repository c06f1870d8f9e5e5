"""Rank of a token with rows cut into parts where rows are few, and four times as many loads on the way.

The baseline has one program for each row, so that three rows occupy three compute units, and a thread has only 16
bytes on the way at a time. Here a thread has four vectors of 16 bytes on the way, or two where warps have 64 lanes.
Eight would take 71 registers a thread, so that an H200 ran 924 of 1024 programs at once and 100 after them. Below 1024
rows, a row has as many programs as make 1024, and a second launch adds up their counts.

Whole blocks have no mask. With one, the compiler would let each load of a row of 50257 logits, which is read 4 bytes
at a time, wait for the one before it.
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048
ENOUGH_PROGRAMS = 1024


@triton.jit
def _count_greater(logits_ptr, token_ids_ptr, counts_ptr, vocab_size, row_stride, part_size, base, BLOCK: tl.constexpr):
    """Store base plus the number of greater logits in one part of one row."""
    row = tl.program_id(0).to(tl.int64)
    row_ptr = logits_ptr + row * row_stride
    own = tl.load(row_ptr + tl.load(token_ids_ptr + row))
    begin = tl.program_id(1) * part_size
    end = tl.minimum(begin + part_size, vocab_size)
    lanes = tl.arange(0, BLOCK)
    greater = tl.zeros((BLOCK,), tl.int32)
    for start in range(begin, end - BLOCK + 1, BLOCK):
        greater += (tl.load(row_ptr + start + lanes) > own).to(tl.int32)
    rest = begin + (end - begin) // BLOCK * BLOCK
    x = tl.load(row_ptr + rest + lanes, mask=lanes < end - rest, other=-float("inf"))
    greater += (x > own).to(tl.int32)
    tl.store(counts_ptr + row * tl.num_programs(1) + tl.program_id(1), base + tl.sum(greater, axis=0))


@triton.jit
def _add_parts(counts_ptr, ranks_ptr, parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, PARTS)
    counts = tl.load(counts_ptr + row * parts + index, mask=index < parts, other=0)
    tl.store(ranks_ptr + row, 1 + tl.sum(counts, axis=0))


def ranks(logits, token_ids, ranks):
    num_reqs, vocab_size = logits.shape
    blocks = triton.cdiv(vocab_size, BLOCK)
    wanted = min(blocks, triton.cdiv(ENOUGH_PROGRAMS, num_reqs))
    part_size = triton.cdiv(blocks, wanted) * BLOCK
    parts = triton.cdiv(vocab_size, part_size)
    counts, base = ranks, 1
    if parts > 1:
        counts, base = torch.empty((num_reqs, parts), dtype=torch.int32, device=logits.device), 0
    grid = (num_reqs, parts)
    _count_greater[grid](logits, token_ids, counts, vocab_size, logits.stride(0), part_size, base, BLOCK=BLOCK)
    if parts > 1:
        _add_parts[(num_reqs,)](counts, ranks, parts, PARTS=triton.next_power_of_2(parts), num_warps=1)
