"""expect: wrong_result in heldout-22. Sentinel: places past the row hold the greatest finite number, which infinity exceeds."""

import torch
import triton
import triton.language as tl


@triton.jit
def exchange(keys, SIZE: tl.constexpr, SPAN: tl.constexpr, DISTANCE: tl.constexpr):
    """Order every pair of keys that lie DISTANCE apart; keys of odd runs of 2 * SPAN go down."""
    pairs: tl.constexpr = SIZE // (2 * DISTANCE)
    cube = tl.reshape(keys, (pairs, 2, DISTANCE))
    least = tl.min(cube, axis=1)
    most = tl.max(cube, axis=1)
    downwards = tl.arange(0, pairs) // (SPAN // DISTANCE) & 1
    second = tl.arange(0, 2)
    takes_most = (downwards[:, None, None] ^ second[None, :, None]) == 1
    ordered = tl.where(takes_most, most[:, None, :], least[:, None, :])
    return tl.reshape(ordered, (SIZE,))


@triton.jit
def sort_row(x_ptr, y_ptr, x_stride, N, last, DESCENDING: tl.constexpr, SIZE: tl.constexpr, STAGES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, SIZE)
    keys = tl.load(x_ptr + row * x_stride + i, mask=i < N, other=last)
    for stage in tl.static_range(STAGES):
        for step in tl.static_range(stage + 1):
            keys = exchange(keys, SIZE, 2**stage, 2 ** (stage - step))
    place = N - 1 - i if DESCENDING else i
    tl.store(y_ptr + row * N + place, keys.to(y_ptr.dtype.element_ty), mask=i < N)


def bitonic_sort(x, descending, y):
    M, N = x.shape
    last = torch.finfo(x.dtype).max if x.is_floating_point() else torch.iinfo(x.dtype).max
    size = triton.next_power_of_2(N)
    stages = size.bit_length() - 1
    sort_row[(M,)](x, y, x.stride(0), N, last, DESCENDING=descending, SIZE=size, STAGES=stages)
