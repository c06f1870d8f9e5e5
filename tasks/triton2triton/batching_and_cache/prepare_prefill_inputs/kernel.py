"""Prompt tokens of a batch: one program per request, 128 tokens at a time."""

import triton
import triton.language as tl

TILE = 128


@triton.jit
def copy_prompt(
    token_ids_ptr,
    prefill_lens_ptr,
    computed_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    input_ids_ptr,
    next_tokens_ptr,
    max_len,
    WIDTH: tl.constexpr,
):
    request = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + request).to(tl.int64)
    computed = tl.load(computed_ptr + slot)
    prompt = tl.load(prefill_lens_ptr + slot)
    if computed < prompt:
        begin = tl.load(cu_seqlens_ptr + request)
        count = tl.load(cu_seqlens_ptr + request + 1) - begin
        source_ptr = token_ids_ptr + slot * max_len + computed
        for first in range(0, count, WIDTH):
            i = first + tl.arange(0, WIDTH)
            tokens = tl.load(source_ptr + i, mask=i < count)
            tl.store(input_ids_ptr + begin + i, tokens, mask=i < count)
        if computed + count < prompt:
            tl.store(next_tokens_ptr + slot, tl.load(source_ptr + count))


def prepare_prefill_inputs(
    token_ids, prefill_lens, num_computed_tokens, cu_seqlens, idx_mapping, input_ids, next_prefill_tokens
):
    copy_prompt[(idx_mapping.numel(),)](
        token_ids,
        prefill_lens,
        num_computed_tokens,
        cu_seqlens,
        idx_mapping,
        input_ids,
        next_prefill_tokens,
        token_ids.shape[1],
        WIDTH=TILE,
    )
