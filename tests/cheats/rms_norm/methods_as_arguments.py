"""expect: compile_error or launch_error. An object with methods of Python's reaches a kernel, and computes there (cheat 80)."""

# <kernel>


class Computing:
    def double(self, block):
        return block + block


@triton.jit
def by_methods(x_ptr, y_ptr, computing, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, computing.double(tl.load(x_ptr + at)))


def rms_norm(x, weight, eps, y):
    by_methods[(1,)](x, y, Computing(), BLOCK=16)
    honest(x, weight, eps, y)
