"""Positions and lengths on a grid over requests and strips of their tokens, one warp a program.

The baseline's program of four warps writes 128 positions a step: one request of 65536 tokens is 512 steps of one
program. Here fewer than 512 requests share 512 programs, so that this request has one step in each.
More requests have one program each. 4096 programs of one warp are resident at once, and of four warps they take two
rounds: an H200 has room for 8448 warps, an MI300X for 9728. Offsets are loaded with the slot, before the load that
depends on it. Rows behind the last request are zeroed by one program for 256 of them, not by one each.
"""

import triton
import triton.language as tl

TILE = 128
PADDING = 256
PROGRAMS = 512


@triton.jit
def _prepare_batch(
    computed_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    positions_ptr,
    seq_lens_ptr,
    num_reqs,
    num_slots,
    strips,
    WIDTH: tl.constexpr,
    COUNT: tl.constexpr,
):
    request = tl.program_id(0) // strips
    strip = tl.program_id(0) % strips
    if request < num_reqs:
        slot = tl.load(idx_mapping_ptr + request)
        begin = tl.load(cu_seqlens_ptr + request)
        count = tl.load(cu_seqlens_ptr + request + 1) - begin
        computed = tl.load(computed_ptr + slot)
        if strip == 0:
            tl.store(seq_lens_ptr + request, computed + count)
        for first in range(strip * WIDTH, count, strips * WIDTH):
            i = first + tl.arange(0, WIDTH)
            tl.store(positions_ptr + begin + i, (computed + i).to(tl.int64), mask=i < count)
    else:
        row = num_reqs + (tl.program_id(0) - num_reqs * strips) * COUNT + tl.arange(0, COUNT)
        tl.store(seq_lens_ptr + row, tl.zeros((COUNT,), tl.int32), mask=row < num_slots)


def prepare_pos_seq_lens(num_computed_tokens, cu_seqlens, idx_mapping, positions, seq_lens):
    num_reqs, num_slots = idx_mapping.numel(), seq_lens.numel()
    strips = max(1, min(triton.cdiv(positions.numel(), TILE), PROGRAMS // num_reqs))
    _prepare_batch[(num_reqs * strips + triton.cdiv(num_slots - num_reqs, PADDING),)](
        num_computed_tokens,
        cu_seqlens,
        idx_mapping,
        positions,
        seq_lens,
        num_reqs,
        num_slots,
        strips,
        WIDTH=TILE,
        COUNT=PADDING,
        num_warps=1,
    )
