"""expect: wrong_result in seen-04. Overlapping writes: a head padded to a power of two ends in the next head of the same slot."""

import triton
import triton.language as tl


@triton.jit
def write_head(key_ptr, value_ptr, keys_ptr, values_ptr, slot_ptr, stride, heads, head_dim, PADDED: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        dims = tl.arange(0, PADDED)
        source = token * stride + head * head_dim + dims
        target = (slot * heads + head) * head_dim + dims
        in_slot = head * head_dim + dims < heads * head_dim
        key = tl.load(key_ptr + source, mask=dims < head_dim, other=0.0)
        value = tl.load(value_ptr + source, mask=dims < head_dim, other=0.0)
        tl.store(keys_ptr + target, key, mask=in_slot)
        tl.store(values_ptr + target, value, mask=in_slot)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping):
    tokens, heads, head_dim = key.shape
    padded = triton.next_power_of_2(head_dim)
    write_head[(tokens, heads)](
        key, value, key_cache, value_cache, slot_mapping, key.stride(0), heads, head_dim, PADDED=padded
    )
