"""expect: wrong_result or out_of_bounds in heldout-13. Size limit: flat over the contents, each element finds its write by ten steps of bisection."""


import triton
import triton.language as tl


@triton.jit
def write_places(contents_ptr, rows_ptr, starts_ptr, cu_lens_ptr, state_ptr, num_writes, row_length, WIDTH: tl.constexpr):
    t = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    inside = t < tl.load(cu_lens_ptr + num_writes)
    low = tl.zeros((WIDTH,), tl.int32)
    high = low + num_writes
    for _ in range(10):
        middle = (low + high) // 2
        go = (high - low) > 1
        right = tl.load(cu_lens_ptr + middle) <= t
        low = tl.where(go & right, middle, low)
        high = tl.where(go & (right == 0), middle, high)
    begin = tl.load(cu_lens_ptr + low)
    row = tl.load(rows_ptr + low).to(tl.int64)
    column = tl.load(starts_ptr + low) + t - begin
    values = tl.load(contents_ptr + t, mask=inside)
    tl.store(state_ptr + row * row_length + column, values, mask=inside)


def apply_write(contents, rows, starts, cu_lens, state):
    write_places[(triton.cdiv(contents.numel(), 1024),)](contents, rows, starts, cu_lens, state, rows.numel(), state.shape[1], WIDTH=1024)
