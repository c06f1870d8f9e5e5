"""Random integers stored as vectors: the four numbers of a Philox block become neighbours in one store.

The baseline stores each word with a stride of 16 bytes: four stores a block, each of which covers every line in part.
The one store has 16 bytes where rows are multiples of 16 bytes; elsewhere its accesses are narrower, but neighbours.
"""

import triton
import triton.language as tl

PHILOX_BLOCKS = 256


@triton.jit
def _random_integers(seeds_ptr, out_ptr, low, high, offset, N, strips, BLOCKS: tl.constexpr):
    row = (tl.program_id(0) // strips).to(tl.int64)
    strip = tl.program_id(0) % strips
    block = strip * BLOCKS + tl.arange(0, BLOCKS)
    first, second, third, fourth = tl.randint4x(tl.load(seeds_ptr + row), offset + block)
    # The first join puts third behind first and fourth behind second; the second makes first, second, third, fourth.
    words = tl.join(tl.join(first, third), tl.join(second, fourth)).reshape(4 * BLOCKS)
    span = (high - low).to(tl.uint64)
    scaled = (words.to(tl.uint32, bitcast=True).to(tl.uint64) * span) >> 32
    i = strip * (4 * BLOCKS) + tl.arange(0, 4 * BLOCKS)
    tl.store(out_ptr + row * N + i, low + scaled.to(tl.int32), mask=i < N)


def philox_randint(seeds, low, high, offset, out):
    M, N = out.shape
    strips = triton.cdiv(N, 4 * PHILOX_BLOCKS)
    _random_integers[(M * strips,)](seeds, out, low, high, offset, N, strips, BLOCKS=PHILOX_BLOCKS)
