"""Multimodal positions: one program per request, 128 tokens at a time, one dimension after the other."""

import triton
import triton.language as tl

TILE = 128


@triton.jit
def position_request(
    prefill_positions_ptr,
    delta_ptr,
    prefill_lens_ptr,
    computed_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    positions_ptr,
    max_len,
    row_length,
    WIDTH: tl.constexpr,
):
    request = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + request).to(tl.int64)
    begin = tl.load(cu_seqlens_ptr + request)
    count = tl.load(cu_seqlens_ptr + request + 1) - begin
    computed = tl.load(computed_ptr + slot)
    in_prefill = computed < tl.load(prefill_lens_ptr + slot)
    delta = tl.load(delta_ptr + slot)
    for first in range(0, count, WIDTH):
        i = first + tl.arange(0, WIDTH)
        for k in range(3):
            listed_ptr = prefill_positions_ptr + (slot * 3 + k) * max_len + computed
            listed = tl.load(listed_ptr + i, mask=in_prefill & (i < count), other=0)
            position = tl.where(in_prefill, listed, computed + i + delta)
            tl.store(positions_ptr + k * row_length + begin + i, position.to(tl.int64), mask=i < count)


def prepare_mrope_positions(
    prefill_positions, position_delta, prefill_lens, num_computed_tokens, cu_seqlens, idx_mapping, positions
):
    position_request[(idx_mapping.numel(),)](
        prefill_positions,
        position_delta,
        prefill_lens,
        num_computed_tokens,
        cu_seqlens,
        idx_mapping,
        positions,
        prefill_positions.shape[2],
        positions.shape[1],
        WIDTH=TILE,
    )
