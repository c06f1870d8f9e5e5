"""Broken: does not compile. The offset inside a block is used under a name that nothing defines."""

import triton
import triton.language as tl


@triton.jit
def _cache_token(key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, stride, row, WIDTH: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_ptr + token)
    lanes = tl.arange(0, WIDTH)
    keep = (lanes < row) & (slot >= 0)
    target = slot * row + lane_offsets  # noqa: F821 (the point of this file)
    tl.store(key_cache_ptr + target, tl.load(key_ptr + token * stride + lanes, mask=keep), mask=keep)
    tl.store(value_cache_ptr + target, tl.load(value_ptr + token * stride + lanes, mask=keep), mask=keep)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping):
    """key, value: (tokens, heads, head_dim); caches: (blocks, block size, heads, head_dim)."""
    row = key.shape[1] * key.shape[2]
    width = triton.next_power_of_2(row)
    _cache_token[(key.shape[0],)](key, value, key_cache, value_cache, slot_mapping, key.stride(0), row, WIDTH=width)
