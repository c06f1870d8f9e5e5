"""Paged cache write by rows of whole tokens: heads are contiguous on both sides, so they are one long row.

A program has one token where its row fills the program's threads with loads of 16 bytes, as in the baseline: two tokens
to a program are no faster, and their masks take more work. What is written leaves the L2 cache last, and what has been
read makes way for it. Shorter rows have several tokens to a program.
"""

import triton
import triton.language as tl

LONGEST = 2048  # elements of a row that a program takes at once
FEW = 512  # elements that leave threads idle


@triton.jit
def _write_row(
    key_ptr,
    value_ptr,
    key_cache_ptr,
    value_cache_ptr,
    slot_ptr,
    key_stride,
    value_stride,
    row_size,
    COLUMNS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        inside = columns < row_size
        # Both loads are in flight before the first store waits for one.
        key = tl.load(key_ptr + token * key_stride + columns, mask=inside)
        value = tl.load(value_ptr + token * value_stride + columns, mask=inside)
        tl.store(key_cache_ptr + slot * row_size + columns, key, mask=inside, eviction_policy="evict_last")
        tl.store(value_cache_ptr + slot * row_size + columns, value, mask=inside, eviction_policy="evict_last")


@triton.jit
def _write_short_rows(
    key_ptr,
    value_ptr,
    key_cache_ptr,
    value_cache_ptr,
    slot_ptr,
    n_tokens,
    key_stride,
    value_stride,
    row_size,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    tokens = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    columns = tl.arange(0, COLUMNS)
    slots = tl.load(slot_ptr + tokens, mask=tokens < n_tokens, other=-1)
    inside = (slots >= 0)[:, None] & (columns < row_size)[None, :]
    targets = slots[:, None] * row_size + columns[None, :]
    key = tl.load(key_ptr + tokens[:, None] * key_stride + columns[None, :], mask=inside)
    value = tl.load(value_ptr + tokens[:, None] * value_stride + columns[None, :], mask=inside)
    tl.store(key_cache_ptr + targets, key, mask=inside)
    tl.store(value_cache_ptr + targets, value, mask=inside)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping):
    n_tokens, heads, head_dim = key.shape
    row_size = heads * head_dim
    columns = min(LONGEST, triton.next_power_of_2(row_size))
    tensors = (key, value, key_cache, value_cache, slot_mapping)
    strides = (key.stride(0), value.stride(0))
    if columns > FEW:
        _write_row[(n_tokens, triton.cdiv(row_size, columns))](*tensors, *strides, row_size, COLUMNS=columns)
        return
    count = min(LONGEST // columns, triton.next_power_of_2(n_tokens))
    _write_short_rows[(triton.cdiv(n_tokens, count),)](
        *tensors, n_tokens, *strides, row_size, TOKENS=count, COLUMNS=columns
    )
