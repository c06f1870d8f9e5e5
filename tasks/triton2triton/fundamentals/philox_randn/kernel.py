"""Normal random numbers: every thread computes the whole block that its number is in, and keeps that number."""

import triton
import triton.language as tl


@triton.jit
def random_numbers(seeds_ptr, out_ptr, mean, std, N, BLOCK: tl.constexpr):
    strips = tl.cdiv(N, BLOCK)
    row = (tl.program_id(0) // strips).to(tl.int64)
    i = tl.program_id(0) % strips * BLOCK + tl.arange(0, BLOCK)
    seed = tl.load(seeds_ptr + row)
    first, second, third, fourth = tl.randn4x(seed, i // 4)
    j = i % 4
    number = tl.where(j == 0, first, tl.where(j == 1, second, tl.where(j == 2, third, fourth)))
    tl.store(out_ptr + row * N + i, (mean + std * number).to(out_ptr.dtype.element_ty), mask=i < N)


def philox_randn(seeds, mean, std, out):
    M, N = out.shape
    random_numbers[(M * triton.cdiv(N, 256),)](seeds, out, mean, std, N, BLOCK=256)
