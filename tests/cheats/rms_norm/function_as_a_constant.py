"""expect: compile_error or launch_error. A Python function reaches a kernel as a constant, and computes there (cheat 80)."""

# <kernel>


def compute(block):
    for element in range(10**6):
        block = block + element * 0.0
    return block


@triton.jit
def by_function(x_ptr, y_ptr, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, FUNCTION(tl.load(x_ptr + at)))


def rms_norm(x, weight, eps, y):
    by_function[(1,)](x, y, FUNCTION=compute, BLOCK=16)
