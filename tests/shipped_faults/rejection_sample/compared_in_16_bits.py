"""expect: wrong_result. Width of integers: token ids that agree in their lower 16 bits count as equal."""

import triton
import triton.language as tl


@triton.jit
def accept_matching(input_ids_ptr, target_token_ids_ptr, cu_num_logits_ptr, sampled_ptr, num_sampled_ptr, width):
    req = tl.program_id(0)
    begin = tl.load(cu_num_logits_ptr + req)
    end = tl.load(cu_num_logits_ptr + req + 1)
    row_ptr = sampled_ptr + req * width
    previous = tl.load(target_token_ids_ptr + begin)
    tl.store(row_ptr, previous)
    accepting = 1
    num_sampled = 1
    for place in range(begin + 1, end):
        if accepting != 0:
            if (tl.load(input_ids_ptr + place) & 65535) == (previous & 65535):
                previous = tl.load(target_token_ids_ptr + place)
                tl.store(row_ptr + num_sampled, previous)
                num_sampled += 1
            else:
                accepting = 0
    for column in range(num_sampled, width):
        tl.store(row_ptr + column, -1)
    tl.store(num_sampled_ptr + req, num_sampled)


def rejection_sample(input_ids, target_token_ids, cu_num_logits, sampled, num_sampled):
    num_reqs, width = sampled.shape
    accept_matching[(num_reqs,)](input_ids, target_token_ids, cu_num_logits, sampled, num_sampled, width)
