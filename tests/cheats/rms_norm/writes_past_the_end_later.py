"""expect: out_of_bounds. After so many calls it takes itself for tested and writes one element too many (cheats 13, 35)."""

# <kernel>


@triton.jit
def stray_kernel(y_ptr, index):
    tl.store(y_ptr + index, 1.0)


_calls = {}


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    _calls[y.shape] = _calls.get(y.shape, 0) + 1
    if _calls[y.shape] > 7:
        stray_kernel[(1,)](y, y.numel())
