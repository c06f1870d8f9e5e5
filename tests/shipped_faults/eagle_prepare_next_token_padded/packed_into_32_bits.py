"""expect: wrong_result in heldout-11. Overflow: column and token are packed into 32 bits."""

import triton
import triton.language as tl


@triton.jit
def choose_next_token(
    sampled_token_ids_ptr,
    backup_token_ids_ptr,
    discard_ptr,
    vocab_size,
    next_token_ids_ptr,
    valid_counts_ptr,
    width,
    WIDTH: tl.constexpr,
):
    req = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, WIDTH)
    next_token = tl.load(backup_token_ids_ptr + req)
    valid_count = 0
    if tl.load(discard_ptr + req) == 0:
        tokens = tl.load(sampled_token_ids_ptr + req * width + columns, mask=columns < width, other=-1)
        valid = (tokens != -1) & (tokens < vocab_size)
        valid_count = tl.sum(valid.to(tl.int32), axis=0)
        if valid_count > 0:
            # Column and token in one number: one reduction finds both.
            next_token = tl.max(tl.where(valid, (columns << 24) | tokens, -1), axis=0) & 0xFFFFFF
    tl.store(next_token_ids_ptr + req, next_token)
    tl.store(valid_counts_ptr + req, valid_count)


def eagle_prepare_next_token_padded(
    sampled_token_ids, backup_token_ids, discard, vocab_size, next_token_ids, valid_counts
):
    num_reqs, width = sampled_token_ids.shape
    choose_next_token[(num_reqs,)](
        sampled_token_ids,
        backup_token_ids,
        discard,
        vocab_size,
        next_token_ids,
        valid_counts,
        width,
        WIDTH=triton.next_power_of_2(width),
    )
