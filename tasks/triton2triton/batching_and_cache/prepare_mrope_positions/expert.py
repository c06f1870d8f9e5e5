"""Multimodal positions of 256 tokens a program, all three dimensions at once.

The baseline's program walks over a request's tokens in steps of 128 and one dimension: its next load is issued after a
store that waits for the load before. 65536 tokens are 1536 such steps, and even one token is three. Here the loads of
the three dimensions are issued together before any store, and each 256 tokens of a request have a program of their own.
The program has as many warps as the tokens need: one for up to 64.
"""

import triton
import triton.language as tl

TILE = 256


@triton.jit
def _position_tile(
    prefill_positions_ptr,
    delta_ptr,
    prefill_lens_ptr,
    computed_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    positions_ptr,
    max_len,
    row_length,
    strips,
    WIDTH: tl.constexpr,
):
    request = tl.program_id(0) // strips
    i = tl.program_id(0) % strips * WIDTH + tl.arange(0, WIDTH)
    slot = tl.load(idx_mapping_ptr + request).to(tl.int64)
    begin = tl.load(cu_seqlens_ptr + request)
    inside = begin + i < tl.load(cu_seqlens_ptr + request + 1)
    computed = tl.load(computed_ptr + slot)
    delta = tl.load(delta_ptr + slot)
    in_prefill = computed < tl.load(prefill_lens_ptr + slot)
    listed_ptr = prefill_positions_ptr + slot * 3 * max_len + computed + i
    time = tl.load(listed_ptr, mask=in_prefill & inside, other=0)
    height = tl.load(listed_ptr + max_len, mask=in_prefill & inside, other=0)
    width = tl.load(listed_ptr + 2 * max_len, mask=in_prefill & inside, other=0)
    counted = computed + i + delta
    target_ptr = positions_ptr + begin + i
    tl.store(target_ptr, tl.where(in_prefill, time, counted).to(tl.int64), mask=inside)
    tl.store(target_ptr + row_length, tl.where(in_prefill, height, counted).to(tl.int64), mask=inside)
    tl.store(target_ptr + 2 * row_length, tl.where(in_prefill, width, counted).to(tl.int64), mask=inside)


def prepare_mrope_positions(
    prefill_positions, position_delta, prefill_lens, num_computed_tokens, cu_seqlens, idx_mapping, positions
):
    num_reqs, row_length = idx_mapping.numel(), positions.shape[1]
    max_query = row_length // num_reqs
    width = min(TILE, max(32, triton.next_power_of_2(max_query)))
    strips = triton.cdiv(max_query, width)
    _position_tile[(num_reqs * strips,)](
        prefill_positions,
        position_delta,
        prefill_lens,
        num_computed_tokens,
        cu_seqlens,
        idx_mapping,
        positions,
        prefill_positions.shape[2],
        row_length,
        strips,
        WIDTH=width,
        num_warps=max(1, width // 64),
    )
