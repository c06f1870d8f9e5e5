"""expect: wrong_result in heldout-16. Size limit: one store of 1024 lanes clears what lies past the last request.

EAGLE's second draft step: one program per request copies its hidden state block by block; one pads the batch.
"""

import triton
import triton.language as tl


@triton.jit
def prepare_request(
    draft_token_ids_ptr,
    output_hidden_states_ptr,
    target_positions_ptr,
    target_seq_lens_ptr,
    num_rejected_ptr,
    last_token_indices_ptr,
    max_model_len,
    input_ids_ptr,
    positions_ptr,
    input_hidden_states_ptr,
    seq_lens_ptr,
    hidden,
    BLOCK: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    place = tl.load(last_token_indices_ptr + req)
    tl.store(input_ids_ptr + req, tl.load(draft_token_ids_ptr + req).to(tl.int32))
    position = tl.load(target_positions_ptr + place) + 1
    tl.store(positions_ptr + req, tl.minimum(position, max_model_len - 1))
    seq_len = tl.load(target_seq_lens_ptr + req) - tl.load(num_rejected_ptr + req) + 1
    tl.store(seq_lens_ptr + req, tl.minimum(seq_len, max_model_len))
    for start in range(0, hidden, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(output_hidden_states_ptr + place * hidden + columns, mask=columns < hidden)
        tl.store(input_hidden_states_ptr + req * hidden + columns, values, mask=columns < hidden)


@triton.jit
def pad_batch(seq_lens_ptr, num_reqs, max_num_reqs, BLOCK: tl.constexpr):
    reqs = num_reqs + tl.arange(0, BLOCK)
    tl.store(seq_lens_ptr + reqs, tl.zeros((BLOCK,), tl.int32), mask=reqs < max_num_reqs)


def prepare_eagle_decode(
    draft_token_ids,
    output_hidden_states,
    target_positions,
    target_seq_lens,
    num_rejected,
    last_token_indices,
    max_model_len,
    input_ids,
    positions,
    input_hidden_states,
    seq_lens,
):
    num_reqs, hidden = input_hidden_states.shape
    prepare_request[(num_reqs,)](
        draft_token_ids,
        output_hidden_states,
        target_positions,
        target_seq_lens,
        num_rejected,
        last_token_indices,
        max_model_len,
        input_ids,
        positions,
        input_hidden_states,
        seq_lens,
        hidden,
        BLOCK=256,
    )
    pad_batch[(1,)](seq_lens, num_reqs, seq_lens.numel(), BLOCK=1024)
