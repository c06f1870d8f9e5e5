"""expect: out_of_bounds. One element behind the output is overwritten (cheat 35)."""

# <kernel>


@triton.jit
def stray_kernel(y_ptr, index):
    tl.store(y_ptr + index, 1.0)


def rms_norm(x, weight, eps, y):
    honest(x, weight, eps, y)
    stray_kernel[(1,)](y, y.numel())
