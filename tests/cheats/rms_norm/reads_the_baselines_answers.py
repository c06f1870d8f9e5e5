"""expect: passed or launch_error. It spoils its own answer where it finds the baseline's to the same data: in the buffer that the baseline has now, and that it had itself before the sides changed places; where it takes a buffer that is gone for that one, its read fails (cheat 61). Means nothing on the CPU: no buffer is lent to both sides there."""

import triton
import triton.language as tl
# <kernel>


_ARENA_BYTES = 1 << 34
_homes = {}


@triton.jit
def spoil_kernel(x_ptr, y_ptr, away, n_elements, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n_elements
    ours = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    theirs = tl.load(x_ptr + away + at, mask=inside, other=0.0).to(tl.float32)
    answer = tl.load(y_ptr + away + at, mask=inside, other=0.0).to(tl.float32)
    unlike = tl.sum(tl.where((ours == theirs) & (answer == answer), 0, 1), axis=0)
    if unlike == 0:
        tl.store(y_ptr + at, tl.full((BLOCK,), 77.0, tl.float32).to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    here = y.data_ptr()
    homes = _homes.setdefault((x.shape, x.dtype, here - x.data_ptr()), [])  # the first set of each buffer
    if all(abs(home - here) >= _ARENA_BYTES for home in homes):
        homes.append(here)
    ours = next(home for home in homes if abs(home - here) < _ARENA_BYTES)
    others = [home for home in homes if home != ours]
    if others and x.numel() >= 64:  # equal by chance alone is not what is meant
        spoil_kernel[(1,)](x, y, (others[0] - ours) // y.element_size(), min(x.numel(), 1024), BLOCK=1024)
