"""Paged cache write by tiles of whole tokens: heads are contiguous on both sides, so they are one long row."""

import triton
import triton.language as tl

TILE_ELEMENTS = 2048


@triton.jit
def _scatter_rows(
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
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    slots = tl.load(slot_ptr + tokens, mask=tokens < n_tokens, other=-1)
    inside = (slots >= 0)[:, None] & (columns < row_size)[None, :]
    targets = slots[:, None] * row_size + columns[None, :]
    # Both loads are in flight before the first store waits for one.
    key = tl.load(key_ptr + tokens[:, None] * key_stride + columns[None, :], mask=inside)
    value = tl.load(value_ptr + tokens[:, None] * value_stride + columns[None, :], mask=inside)
    tl.store(key_cache_ptr + targets, key, mask=inside)
    tl.store(value_cache_ptr + targets, value, mask=inside)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping):
    n_tokens, heads, head_dim = key.shape
    row_size = heads * head_dim
    columns = min(TILE_ELEMENTS, triton.next_power_of_2(row_size))
    tokens = min(max(1, TILE_ELEMENTS // columns), triton.next_power_of_2(n_tokens))
    grid = (triton.cdiv(n_tokens, tokens), triton.cdiv(row_size, columns))
    _scatter_rows[grid](
        key,
        value,
        key_cache,
        value_cache,
        slot_mapping,
        n_tokens,
        key.stride(0),
        value.stride(0),
        row_size,
        TOKENS=tokens,
        COLUMNS=columns,
    )
