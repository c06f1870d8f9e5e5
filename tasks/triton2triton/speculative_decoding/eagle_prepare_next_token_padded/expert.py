"""Tokens to continue with: several rows a warp, with all loads at once and two reductions within the warp.

The baseline loads a row behind a branch on whether its request is discarded, which is a second wait for memory. A row
of 4 tokens has a program of four warps, whose three reductions, two behind a branch, go through shared memory.

Here nothing is behind a branch: rows, backups and flags are loaded at once. A warp has 64 tokens, such as 16 rows of 4.
The last valid token is the maximum of column and token in one number of 64 bits, so that its reduction and that of the
count are independent, and both are shuffles among the lanes of a row.
"""

import triton
import triton.language as tl

TILE = 64


@triton.jit
def _choose_tokens(
    sampled_token_ids_ptr,
    backup_token_ids_ptr,
    discard_ptr,
    vocab_size,
    next_token_ids_ptr,
    valid_counts_ptr,
    num_reqs,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    LANES: tl.constexpr,
):
    reqs = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    real = reqs < num_reqs
    columns = tl.arange(0, LANES)[None, :]
    backup = tl.load(backup_token_ids_ptr + reqs, mask=real, other=0)
    kept = tl.load(discard_ptr + reqs, mask=real, other=1) == 0
    inside = real[:, None] & (columns < WIDTH)
    tokens = tl.load(sampled_token_ids_ptr + reqs[:, None] * WIDTH + columns, mask=inside, other=-1)
    valid = (tokens != -1) & (tokens < vocab_size) & kept[:, None]
    # Valid tokens are not negative: the greatest number has the last column, and its low half is the token.
    keys = tl.where(valid, (columns.to(tl.int64) << 32) | tokens.to(tl.int64), -1)
    last = tl.max(keys, axis=1)
    count = tl.sum(valid.to(tl.int32), axis=1)
    tl.store(next_token_ids_ptr + reqs, tl.where(last >= 0, last.to(tl.int32), backup), mask=real)
    tl.store(valid_counts_ptr + reqs, count, mask=real)


def eagle_prepare_next_token_padded(
    sampled_token_ids, backup_token_ids, discard, vocab_size, next_token_ids, valid_counts
):
    num_reqs, width = sampled_token_ids.shape
    lanes = triton.next_power_of_2(width)
    rows = max(1, TILE // lanes)
    _choose_tokens[(triton.cdiv(num_reqs, rows),)](
        sampled_token_ids,
        backup_token_ids,
        discard,
        vocab_size,
        next_token_ids,
        valid_counts,
        num_reqs,
        WIDTH=width,
        ROWS=rows,
        LANES=lanes,
        num_warps=1,
    )
