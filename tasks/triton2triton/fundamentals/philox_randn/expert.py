"""Normal random numbers without waste: every thread computes a block of Philox once and stores all four numbers of it.

The baseline computes each block four times over. Arithmetic is the limit, not memory, so that sine and cosine are
polynomials (least squares at Chebyshev's nodes, off by 5e-7): the angle lies within one turn and needs no reduction.
Four warps have two blocks a thread; joining the four results of a block makes neighbours of them, stored as a vector.
"""

import triton
import triton.language as tl

PHILOX_BLOCKS = 256


@triton.jit
def _unit(word):
    word = word.to(tl.int32, bitcast=True)
    return tl.where(word < 0, ~word, word) * 4.6566127342e-10


@triton.jit
def _normal_pair(word, other_word):
    # log2 is a GPU's own logarithm: -2 * ln(u) = -2 * ln(2) * log2(u).
    radius = tl.sqrt(-1.3862943611198906 * tl.log2(tl.maximum(_unit(word), 1.0e-7)))
    # Half a turn back, in [-0.5, 0.5), sine and cosine change their signs.
    turns = _unit(other_word) - 0.5
    s = turns * turns
    sine = -12.2688599 * s + 41.2037436
    sine = sine * s - 76.5796879
    sine = sine * s + 81.5961388
    sine = sine * s - 41.3414194
    sine = sine * s + 6.28318279
    cosine = 6.52865816 * s - 25.9675992
    cosine = cosine * s + 60.167631
    cosine = cosine * s - 85.4501395
    cosine = cosine * s + 64.9391175
    cosine = cosine * s - 19.7392045
    cosine = cosine * s + 0.999999989
    return -radius * cosine, -radius * turns * sine


@triton.jit
def _random_numbers(seeds_ptr, out_ptr, mean, std, N, strips, BLOCKS: tl.constexpr):
    row = (tl.program_id(0) // strips).to(tl.int64)
    strip = tl.program_id(0) % strips
    blocks = strip * BLOCKS + tl.arange(0, BLOCKS)
    first_word, second_word, third_word, fourth_word = tl.randint4x(tl.load(seeds_ptr + row), blocks)
    first, second = _normal_pair(first_word, second_word)
    third, fourth = _normal_pair(third_word, fourth_word)
    # The first join puts third behind first and fourth behind second; the second makes first, second, third, fourth.
    numbers = tl.join(tl.join(first, third), tl.join(second, fourth)).reshape(4 * BLOCKS)
    i = strip * (4 * BLOCKS) + tl.arange(0, 4 * BLOCKS)
    tl.store(out_ptr + row * N + i, (mean + std * numbers).to(out_ptr.dtype.element_ty), mask=i < N)


def philox_randn(seeds, mean, std, out):
    M, N = out.shape
    strips = triton.cdiv(N, 4 * PHILOX_BLOCKS)
    _random_numbers[(M * strips,)](seeds, out, mean, std, N, strips, BLOCKS=PHILOX_BLOCKS)
