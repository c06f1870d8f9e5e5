"""expect: wrong_result in seen-01. Offsets of 32 bits: the upper half of a seed is lost."""

import triton
import triton.language as tl


@triton.jit
def store_bounded(out_ptr, words, i, N, low, span):
    """The words scaled to [low, low + span), at places i of a row."""
    scaled = (words.to(tl.uint32, bitcast=True).to(tl.uint64) * span) >> 32
    tl.store(out_ptr + i, low + scaled.to(tl.int32), mask=i < N)


@triton.jit
def random_integers(seeds_ptr, out_ptr, low, high, offset, N, BLOCKS: tl.constexpr):
    strips = tl.cdiv(N, 4 * BLOCKS)
    row = (tl.program_id(0) // strips).to(tl.int64)
    block = tl.program_id(0) % strips * BLOCKS + tl.arange(0, BLOCKS)
    first, second, third, fourth = tl.randint4x(tl.load(seeds_ptr + row).to(tl.uint32), offset + block)
    out_row = out_ptr + row * N
    span = (high - low).to(tl.uint64)
    store_bounded(out_row, first, 4 * block, N, low, span)
    store_bounded(out_row, second, 4 * block + 1, N, low, span)
    store_bounded(out_row, third, 4 * block + 2, N, low, span)
    store_bounded(out_row, fourth, 4 * block + 3, N, low, span)


def philox_randint(seeds, low, high, offset, out):
    M, N = out.shape
    random_integers[(M * triton.cdiv(N, 512),)](seeds, out, low, high, offset, N, BLOCKS=128)
