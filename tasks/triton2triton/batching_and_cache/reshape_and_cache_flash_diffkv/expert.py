"""Cache write of unequal heads as one list of vectors of 16 bytes, in the order of the cache, 512 a program.

The baseline's program walks over a token's heads, 64 in the largest case, and each step waits for the loads of one head
of 320 values. Its tiles are powers of two: 192 values of a key occupy 256 lanes. Here heads are multiples of 8 values,
so that every vector lies within a key or a value, and no lane is idle. Sizes are constants of the program: quotients
are products and shifts. A thread of four warps has four vectors in flight.
"""

import triton
import triton.language as tl

VECTORS = 512


@triton.jit
def _write_vectors(
    key_ptr,
    value_ptr,
    kv_cache_ptr,
    slot_mapping_ptr,
    total,
    HEADS: tl.constexpr,
    KEY_VECTORS: tl.constexpr,
    VALUE_VECTORS: tl.constexpr,
    COUNT: tl.constexpr,
    WIDTH: tl.constexpr,
):
    vector = tl.program_id(0) * COUNT + tl.arange(0, COUNT)[:, None]
    head = vector // (KEY_VECTORS + VALUE_VECTORS)
    place = vector % (KEY_VECTORS + VALUE_VECTORS)
    token = head // HEADS
    slot = tl.load(slot_mapping_ptr + token, mask=vector < total, other=-1)
    lane = tl.arange(0, WIDTH)[None, :]
    in_key = tl.broadcast_to((slot >= 0) & (place < KEY_VECTORS), (COUNT, WIDTH))
    in_value = tl.broadcast_to((slot >= 0) & (place >= KEY_VECTORS), (COUNT, WIDTH))
    key = tl.load(key_ptr + (head * KEY_VECTORS + place) * WIDTH + lane, mask=in_key)
    value = tl.load(value_ptr + (head * VALUE_VECTORS + place - KEY_VECTORS) * WIDTH + lane, mask=in_value)
    row = (slot * HEADS + head % HEADS) * (KEY_VECTORS + VALUE_VECTORS)
    target_ptr = kv_cache_ptr + (row + place) * WIDTH + lane
    tl.store(target_ptr, key, mask=in_key)
    tl.store(target_ptr, value, mask=in_value)


def reshape_and_cache_flash_diffkv(key, value, kv_cache, slot_mapping):
    num_tokens, num_heads, head_dim = key.shape
    value_dim = value.shape[2]
    width = 16 // key.element_size()
    total = num_tokens * num_heads * (head_dim + value_dim) // width
    _write_vectors[(triton.cdiv(total, VECTORS),)](
        key,
        value,
        kv_cache,
        slot_mapping,
        total,
        HEADS=num_heads,
        KEY_VECTORS=head_dim // width,
        VALUE_VECTORS=value_dim // width,
        COUNT=VECTORS,
        WIDTH=width,
        num_warps=4,
    )
