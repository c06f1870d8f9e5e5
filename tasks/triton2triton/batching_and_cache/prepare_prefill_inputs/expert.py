"""Prompt tokens of a batch in three dependent loads, 256 tokens a program.

The baseline loads a request's slot, then its lengths, then its offsets, then its tokens 128 at a time, and then the
next token. These are five loads that wait for each other where one step suffices, and 1028 with 131072 tokens. Here
offsets are loaded with the slot and the next token with the others: three loads wait for each other. Masks take the
place of branches. Each 256 tokens of a request have a program of their own, with one warp for up to 64 tokens.
"""

import triton
import triton.language as tl

TILE = 256


@triton.jit
def _copy_tile(
    token_ids_ptr,
    prefill_lens_ptr,
    computed_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    input_ids_ptr,
    next_tokens_ptr,
    max_len,
    strips,
    WIDTH: tl.constexpr,
):
    request = tl.program_id(0) // strips
    strip = tl.program_id(0) % strips
    slot = tl.load(idx_mapping_ptr + request).to(tl.int64)
    begin = tl.load(cu_seqlens_ptr + request)
    count = tl.load(cu_seqlens_ptr + request + 1) - begin
    computed = tl.load(computed_ptr + slot)
    prompt = tl.load(prefill_lens_ptr + slot)
    source_ptr = token_ids_ptr + slot * max_len + computed
    i = strip * WIDTH + tl.arange(0, WIDTH)
    copied = (i < count) & (computed < prompt)
    has_next = (strip == 0) & (computed + count < prompt)
    tokens = tl.load(source_ptr + i, mask=copied)
    next_token = tl.load(source_ptr + count, mask=has_next)
    tl.store(input_ids_ptr + begin + i, tokens, mask=copied)
    tl.store(next_tokens_ptr + slot, next_token, mask=has_next)


def prepare_prefill_inputs(
    token_ids, prefill_lens, num_computed_tokens, cu_seqlens, idx_mapping, input_ids, next_prefill_tokens
):
    num_reqs = idx_mapping.numel()
    max_query = input_ids.numel() // num_reqs
    width = min(TILE, max(32, triton.next_power_of_2(max_query)))
    strips = triton.cdiv(max_query, width)
    _copy_tile[(num_reqs * strips,)](
        token_ids,
        prefill_lens,
        num_computed_tokens,
        cu_seqlens,
        idx_mapping,
        input_ids,
        next_prefill_tokens,
        token_ids.shape[1],
        strips,
        WIDTH=width,
        num_warps=max(1, width // 64),
    )
