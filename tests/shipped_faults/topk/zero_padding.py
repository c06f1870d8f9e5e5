"""expect: wrong_result in heldout-18. Fill of a masked load: masked keys of later passes are 0, which is more than those of negative numbers."""

import torch
import triton
import triton.language as tl


@triton.jit
def select_elements(x_ptr, keys_ptr, n, BLOCK: tl.constexpr, KEPT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    place = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + place, mask=place < n, other=0.0)
    bits = x.to(tl.int32, bitcast=True)
    # Negative numbers fall as their bits rise.
    rank = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    keys = (rank << 32) | (0x7FFFFFFF - place).to(tl.int64)
    keys = tl.where(place < n, keys, -0x8000000000000000)
    best = tl.topk(keys, KEPT)
    tl.store(keys_ptr + (row * tl.num_programs(1) + block) * KEPT + tl.arange(0, KEPT), best)


@triton.jit
def select_keys(from_ptr, to_ptr, length, BLOCK: tl.constexpr, KEPT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    place = block * BLOCK + tl.arange(0, BLOCK)
    keys = tl.load(from_ptr + row * length + place, mask=place < length, other=0)
    best = tl.topk(keys, KEPT)
    tl.store(to_ptr + (row * tl.num_programs(1) + block) * KEPT + tl.arange(0, KEPT), best)


@triton.jit
def decode_keys(keys_ptr, values_ptr, indices_ptr, k, KEPT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, KEPT)
    keys = tl.load(keys_ptr + row * KEPT + place)
    rank = (keys >> 32).to(tl.int32)
    bits = tl.where(rank < 0, rank ^ 0x7FFFFFFF, rank)
    tl.store(values_ptr + row * k + place, bits.to(tl.float32, bitcast=True), mask=place < k)
    tl.store(indices_ptr + row * k + place, 0x7FFFFFFF - (keys & 0xFFFFFFFF), mask=place < k)


def select_greatest(x, values, indices):
    batch, n = x.shape
    k = values.shape[1]
    kept = max(2, triton.next_power_of_2(k))
    block = max(2048, 4 * kept)

    def blocks_of(length):
        size = min(block, max(kept, triton.next_power_of_2(length)))
        return size, triton.cdiv(length, size)

    size, blocks = blocks_of(n)
    keys = torch.empty((batch, blocks * kept), dtype=torch.int64, device=x.device)
    select_elements[(batch, blocks)](x, keys, n, BLOCK=size, KEPT=kept, num_warps=8)
    while blocks > 1:
        length = blocks * kept
        size, blocks = blocks_of(length)
        fewer = torch.empty((batch, blocks * kept), dtype=torch.int64, device=x.device)
        select_keys[(batch, blocks)](keys, fewer, length, BLOCK=size, KEPT=kept, num_warps=8)
        keys = fewer
    decode_keys[(batch,)](keys, values, indices, k, KEPT=kept)
