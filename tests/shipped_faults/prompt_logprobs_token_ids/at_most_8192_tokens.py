"""expect: wrong_result. Size limit: of a longer chunk only the first 8,192 tokens are written."""

import triton
import triton.language as tl


@triton.jit
def shift_prompt(
    token_ids_ptr,
    prompt_lens_ptr,
    num_computed_tokens_ptr,
    cu_seqlens_ptr,
    idx_mapping_ptr,
    next_token_ids_ptr,
    row_stride,
    BLOCK: tl.constexpr,
):
    req = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + req).to(tl.int64)
    prompt_len = tl.load(prompt_lens_ptr + slot)
    context_len = tl.load(num_computed_tokens_ptr + slot)
    begin = tl.load(cu_seqlens_ptr + req)
    end = tl.load(cu_seqlens_ptr + req + 1)
    for start in range(begin, tl.minimum(end, begin + 8192), BLOCK):
        places = start + tl.arange(0, BLOCK)
        following = context_len + places - begin + 1
        known = (places < end) & (following < prompt_len)
        tokens = tl.load(token_ids_ptr + slot * row_stride + following, mask=known, other=-1)
        tl.store(next_token_ids_ptr + places, tokens.to(tl.int64), mask=places < end)


def prompt_logprobs_token_ids(token_ids, prompt_lens, num_computed_tokens, cu_seqlens, idx_mapping, next_token_ids):
    shift_prompt[(idx_mapping.numel(),)](
        token_ids,
        prompt_lens,
        num_computed_tokens,
        cu_seqlens,
        idx_mapping,
        next_token_ids,
        token_ids.stride(0),
        BLOCK=256,
    )
