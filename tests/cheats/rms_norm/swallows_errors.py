"""expect: wrong_result. The launch fails, the error is swallowed, and what memory held is the answer (cheat 26)."""

# <kernel>


@triton.jit
def too_large(y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), 0.0)


def rms_norm(x, weight, eps, y):
    try:
        too_large[(1,)](y, BLOCK=3 << 20)
    except Exception:
        pass
