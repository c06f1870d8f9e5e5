"""NaN count with rows cut into parts where rows are few, and no reduction inside the loop.

The baseline has one program for each row, so that three rows occupy three cores, and adds up across all threads after
every 1024 logits. Here each lane keeps a count until its part ends, and a thread of four warps has four vectors of 16
bytes on the way instead of two. Eight would take 69 registers a thread, so that an H200 ran 924 of 1024 programs at
once and 100 after them. Below 1024 rows, a row has as many programs as make 1024, and a second launch adds up parts.
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048
ENOUGH_PROGRAMS = 1024


@triton.jit
def _count_part(logits_ptr, counts_ptr, vocab_size, row_stride, part_size, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * part_size
    end = tl.minimum(begin + part_size, vocab_size)
    found = tl.zeros((BLOCK,), tl.int32)
    for start in range(begin, end, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * row_stride + tokens, mask=tokens < vocab_size, other=0.0)
        # NaN alone differs from itself.
        found += (x != x).to(tl.int32)
    tl.store(counts_ptr + row * tl.num_programs(1) + tl.program_id(1), tl.sum(found, axis=0))


@triton.jit
def _add_parts(counts_ptr, num_nans_ptr, parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, PARTS)
    counts = tl.load(counts_ptr + row * parts + index, mask=index < parts, other=0)
    tl.store(num_nans_ptr + row, tl.sum(counts, axis=0))


def num_nans(logits, num_nans):
    num_reqs, vocab_size = logits.shape
    blocks = triton.cdiv(vocab_size, BLOCK)
    wanted = min(blocks, triton.cdiv(ENOUGH_PROGRAMS, num_reqs))
    part_size = triton.cdiv(blocks, wanted) * BLOCK
    parts = triton.cdiv(vocab_size, part_size)
    counts = num_nans
    if parts > 1:
        counts = torch.empty((num_reqs, parts), dtype=torch.int32, device=logits.device)
    _count_part[(num_reqs, parts)](logits, counts, vocab_size, logits.stride(0), part_size, BLOCK=BLOCK)
    if parts > 1:
        _add_parts[(num_reqs,)](counts, num_nans, parts, PARTS=triton.next_power_of_2(parts), num_warps=1)
