"""Paged cache write: one program per token and head."""

import triton
import triton.language as tl


@triton.jit
def write_head(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, token_stride, head_dim, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        lanes = tl.arange(0, BLOCK)
        inside = lanes < head_dim
        source = token * token_stride + head * head_dim + lanes
        target = (slot * tl.num_programs(1) + head) * head_dim + lanes
        key = tl.load(key_ptr + source, mask=inside)
        tl.store(key_cache_ptr + target, key, mask=inside)
        value = tl.load(value_ptr + source, mask=inside)
        tl.store(value_cache_ptr + target, value, mask=inside)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping):
    tokens, heads, head_dim = key.shape
    block = triton.next_power_of_2(head_dim)
    write_head[(tokens, heads)](key, value, key_cache, value_cache, slot_mapping, key.stride(0), head_dim, BLOCK=block)
