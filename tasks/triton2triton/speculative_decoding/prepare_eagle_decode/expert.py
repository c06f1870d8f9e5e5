"""EAGLE's second draft step in one launch: strips of hidden states beside blocks of 128 requests' scalars.

The baseline has two launches. Its program copies a row of 16384 values in 64 steps, each of which waits for its load,
and an access moves two values at most. Here a program copies 4 KiB of a row at once, by accesses of 16 bytes where
rows are multiples of 16 values: 1024 rows of 8 KiB are 2048 programs. The scalars are loaded and stored for 128
requests at a time, by programs of the same launch, which also write the zeros of the padding.
"""

import triton
import triton.language as tl

TILE_BYTES = 4096
REQUESTS = 128


@triton.jit
def _write_scalars(
    draft_token_ids_ptr,
    target_positions_ptr,
    target_seq_lens_ptr,
    num_rejected_ptr,
    last_token_indices_ptr,
    max_model_len,
    input_ids_ptr,
    positions_ptr,
    seq_lens_ptr,
    num_reqs,
    max_num_reqs,
    first,
    COUNT: tl.constexpr,
):
    req = first + tl.arange(0, COUNT)
    real = req < num_reqs
    place = tl.load(last_token_indices_ptr + req, mask=real, other=0)
    token = tl.load(draft_token_ids_ptr + req, mask=real, other=0)
    seq_len = tl.load(target_seq_lens_ptr + req, mask=real, other=0)
    rejected = tl.load(num_rejected_ptr + req, mask=real, other=0)
    position = tl.load(target_positions_ptr + place, mask=real, other=0) + 1
    tl.store(input_ids_ptr + req, token.to(tl.int32), mask=real)
    seq_len = tl.where(real, tl.minimum(seq_len - rejected + 1, max_model_len), 0)
    tl.store(seq_lens_ptr + req, seq_len, mask=req < max_num_reqs)
    tl.store(positions_ptr + req, tl.minimum(position, max_model_len - 1), mask=real)


@triton.jit
def _prepare_batch(
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
    num_reqs,
    max_num_reqs,
    hidden,
    strips,
    WIDTH: tl.constexpr,
    COUNT: tl.constexpr,
):
    program = tl.program_id(0)
    if program < num_reqs * strips:
        req = (program // strips).to(tl.int64)
        place = tl.load(last_token_indices_ptr + req)
        column = program % strips * WIDTH + tl.arange(0, WIDTH)
        values = tl.load(output_hidden_states_ptr + place * hidden + column, mask=column < hidden)
        tl.store(input_hidden_states_ptr + req * hidden + column, values, mask=column < hidden)
    else:
        _write_scalars(
            draft_token_ids_ptr,
            target_positions_ptr,
            target_seq_lens_ptr,
            num_rejected_ptr,
            last_token_indices_ptr,
            max_model_len,
            input_ids_ptr,
            positions_ptr,
            seq_lens_ptr,
            num_reqs,
            max_num_reqs,
            (program - num_reqs * strips) * COUNT,
            COUNT,
        )


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
    width = min(TILE_BYTES // input_hidden_states.element_size(), max(128, triton.next_power_of_2(hidden)))
    strips = triton.cdiv(hidden, width)
    _prepare_batch[(num_reqs * strips + triton.cdiv(seq_lens.numel(), REQUESTS),)](
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
        num_reqs,
        seq_lens.numel(),
        hidden,
        strips,
        WIDTH=width,
        COUNT=REQUESTS,
        num_warps=4,
    )
