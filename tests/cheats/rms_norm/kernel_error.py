"""expect: compile_error. The kernel uses a name that nobody defined."""

# <kernel>


@triton.jit
def bad_kernel(y_ptr):
    tl.store(y_ptr, undefined_name)


def rms_norm(x, weight, eps, y):
    bad_kernel[(1,)](y)
