"""expect: wrong_result in heldout-10. Size limit: all drafts of a request are compared by one wave of 64 lanes and a ballot: of more than 64 places the rest are rejected."""


import triton
import triton.language as tl


@triton.jit
def accept_matching(input_ids_ptr, target_token_ids_ptr, cu_num_logits_ptr, sampled_ptr, num_sampled_ptr, width, WAVE: tl.constexpr, WIDTH: tl.constexpr):
    req = tl.program_id(0)
    begin = tl.load(cu_num_logits_ptr + req)
    n = tl.load(cu_num_logits_ptr + req + 1) - begin
    lanes = tl.arange(0, WAVE)
    drafts = tl.load(input_ids_ptr + begin + lanes, mask=(lanes > 0) & (lanes < n), other=0)
    previous = tl.load(target_token_ids_ptr + begin + lanes - 1, mask=(lanes > 0) & (lanes < n), other=0)
    wrong = (lanes > 0) & ((drafts != previous) | (lanes >= n))
    num_sampled = tl.min(tl.where(wrong, lanes, WAVE), axis=0)
    num_sampled = tl.minimum(num_sampled, n)
    columns = tl.arange(0, WIDTH)
    tokens = tl.load(target_token_ids_ptr + begin + columns, mask=columns < num_sampled, other=-1)
    tl.store(sampled_ptr + req * width + columns, tokens, mask=columns < width)
    tl.store(num_sampled_ptr + req, num_sampled)


def rejection_sample(input_ids, target_token_ids, cu_num_logits, sampled, num_sampled):
    num_reqs, width = sampled.shape
    accept_matching[(num_reqs,)](input_ids, target_token_ids, cu_num_logits, sampled, num_sampled, width, WAVE=64, WIDTH=triton.next_power_of_2(width))
