"""EAGLE's further draft steps in one launch: the copied hidden states are one contiguous block of memory.

The first programs advance the requests beside their share of the copy.
"""

import triton
import triton.language as tl

BLOCK = 8192


@triton.jit
def _advance(
    draft_token_ids_ptr,
    output_hidden_states_ptr,
    input_ids_ptr,
    hidden_states_ptr,
    positions_ptr,
    seq_lens_ptr,
    max_model_len,
    num_reqs,
    num_values,
    REQS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    places = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(output_hidden_states_ptr + places, mask=places < num_values)
    if program * REQS < num_reqs:
        reqs = program * REQS + tl.arange(0, REQS)
        inside = reqs < num_reqs
        drafts = tl.load(draft_token_ids_ptr + reqs, mask=inside)
        positions = tl.load(positions_ptr + reqs, mask=inside)
        seq_lens = tl.load(seq_lens_ptr + reqs, mask=inside)
        tl.store(input_ids_ptr + reqs, drafts.to(tl.int32), mask=inside)
        tl.store(positions_ptr + reqs, tl.minimum(positions + 1, max_model_len - 1), mask=inside)
        tl.store(seq_lens_ptr + reqs, tl.minimum(seq_lens + 1, max_model_len), mask=inside)
    tl.store(hidden_states_ptr + places, values, mask=places < num_values)


def update_eagle_inputs(
    draft_token_ids, output_hidden_states, input_ids, hidden_states, positions, seq_lens, max_model_len
):
    num_reqs, num_values = draft_token_ids.numel(), output_hidden_states.numel()
    reqs = 256
    grid = (max(triton.cdiv(num_values, BLOCK), triton.cdiv(num_reqs, reqs)),)
    _advance[grid](
        draft_token_ids,
        output_hidden_states,
        input_ids,
        hidden_states,
        positions,
        seq_lens,
        max_model_len,
        num_reqs,
        num_values,
        REQS=reqs,
        BLOCK=BLOCK,
        num_warps=8,
    )
