"""Cache write of unequal heads: one program per token, which walks over its heads and writes value, then key."""

import triton
import triton.language as tl


@triton.jit
def write_token(
    key_ptr,
    value_ptr,
    kv_cache_ptr,
    slot_mapping_ptr,
    num_heads,
    head_dim,
    value_dim,
    KEY_WIDTH: tl.constexpr,
    VALUE_WIDTH: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping_ptr + token)
    if slot >= 0:
        k = tl.arange(0, KEY_WIDTH)
        v = tl.arange(0, VALUE_WIDTH)
        for head in range(num_heads):
            row = (slot * num_heads + head) * (head_dim + value_dim)
            value = tl.load(value_ptr + (token * num_heads + head) * value_dim + v, mask=v < value_dim)
            tl.store(kv_cache_ptr + row + head_dim + v, value, mask=v < value_dim)
            key = tl.load(key_ptr + (token * num_heads + head) * head_dim + k, mask=k < head_dim)
            tl.store(kv_cache_ptr + row + k, key, mask=k < head_dim)


def reshape_and_cache_flash_diffkv(key, value, kv_cache, slot_mapping):
    num_tokens, num_heads, head_dim = key.shape
    value_dim = value.shape[2]
    write_token[(num_tokens,)](
        key,
        value,
        kv_cache,
        slot_mapping,
        num_heads,
        head_dim,
        value_dim,
        KEY_WIDTH=triton.next_power_of_2(head_dim),
        VALUE_WIDTH=triton.next_power_of_2(value_dim),
    )
