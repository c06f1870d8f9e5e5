"""expect: compile_error or launch_error, emulated: compile_error. The body of a kernel calls NumPy on the whole input (cheat 80)."""

from triton.runtime.interpreter import np

# <kernel>


@triton.jit
def by_numpy(x_ptr, weight_ptr, y_ptr, n, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    x.handle.data[...] = np.sqrt(x.handle.data)
    tl.store(y_ptr + at, x)


def rms_norm(x, weight, eps, y):
    by_numpy[(1,)](x, weight, y, x.numel(), eps, ROWS=x.shape[0], BLOCK=triton.next_power_of_2(x.numel()))
