"""expect: wrong_result in seen-01. Tuned in place: every configuration advances positions and lengths again."""

import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 64})], key=[])
@triton.jit
def advance_requests(
    draft_token_ids_ptr, input_ids_ptr, positions_ptr, seq_lens_ptr, max_model_len, num_reqs, BLOCK: tl.constexpr
):
    """BLOCK requests."""
    reqs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = reqs < num_reqs
    drafts = tl.load(draft_token_ids_ptr + reqs, mask=inside, other=0)
    tl.store(input_ids_ptr + reqs, drafts.to(tl.int32), mask=inside)
    positions = tl.load(positions_ptr + reqs, mask=inside, other=0)
    tl.store(positions_ptr + reqs, tl.minimum(positions + 1, max_model_len - 1), mask=inside)
    seq_lens = tl.load(seq_lens_ptr + reqs, mask=inside, other=0)
    tl.store(seq_lens_ptr + reqs, tl.minimum(seq_lens + 1, max_model_len), mask=inside)


@triton.jit
def copy_hidden(output_hidden_states_ptr, hidden_states_ptr, hidden, BLOCK: tl.constexpr):
    """A block of one request's hidden state."""
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    places = tl.program_id(0).to(tl.int64) * hidden + columns
    values = tl.load(output_hidden_states_ptr + places, mask=columns < hidden)
    tl.store(hidden_states_ptr + places, values, mask=columns < hidden)


def update_eagle_inputs(
    draft_token_ids, output_hidden_states, input_ids, hidden_states, positions, seq_lens, max_model_len
):
    num_reqs, hidden = output_hidden_states.shape
    advance_requests[lambda meta: (triton.cdiv(num_reqs, meta["BLOCK"]),)](
        draft_token_ids, input_ids, positions, seq_lens, max_model_len, num_reqs
    )
    copy_hidden[(num_reqs, triton.cdiv(hidden, 1024))](output_hidden_states, hidden_states, hidden, BLOCK=1024)
