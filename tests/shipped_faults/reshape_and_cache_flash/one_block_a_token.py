"""expect: wrong_result in heldout-29. Size limit: one block of at most 8192 values writes a token."""

import triton
import triton.language as tl

TILE = 8192


@triton.jit
def write_row(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, token_stride, row_length, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = columns < row_length
        source = token * token_stride + columns
        target = slot * row_length + columns
        key = tl.load(key_ptr + source, mask=inside)
        value = tl.load(value_ptr + source, mask=inside)
        tl.store(key_cache_ptr + target, key, mask=inside)
        tl.store(value_cache_ptr + target, value, mask=inside)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping):
    tokens, heads, head_dim = key.shape
    row_length = heads * head_dim
    block = min(TILE, triton.next_power_of_2(row_length))
    grid = (tokens, 1)
    write_row[grid](key, value, key_cache, value_cache, slot_mapping, key.stride(0), row_length, BLOCK=block)
