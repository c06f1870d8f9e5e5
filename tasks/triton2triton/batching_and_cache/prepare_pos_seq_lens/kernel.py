"""Positions and lengths: one program per row of seq_lens, which walks over the request's tokens 128 at a time."""

import triton
import triton.language as tl

TILE = 128


@triton.jit
def prepare_request(
    computed_ptr, cu_seqlens_ptr, idx_mapping_ptr, positions_ptr, seq_lens_ptr, num_reqs, WIDTH: tl.constexpr
):
    request = tl.program_id(0)
    if request >= num_reqs:
        tl.store(seq_lens_ptr + request, 0)
    else:
        computed = tl.load(computed_ptr + tl.load(idx_mapping_ptr + request))
        begin = tl.load(cu_seqlens_ptr + request)
        count = tl.load(cu_seqlens_ptr + request + 1) - begin
        tl.store(seq_lens_ptr + request, computed + count)
        for first in range(0, count, WIDTH):
            i = first + tl.arange(0, WIDTH)
            tl.store(positions_ptr + begin + i, (computed + i).to(tl.int64), mask=i < count)


def prepare_pos_seq_lens(num_computed_tokens, cu_seqlens, idx_mapping, positions, seq_lens):
    prepare_request[(seq_lens.numel(),)](
        num_computed_tokens, cu_seqlens, idx_mapping, positions, seq_lens, idx_mapping.numel(), WIDTH=TILE
    )
