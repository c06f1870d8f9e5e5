"""expect: passed. A first kernel fills the output, a second one overwrites it; something is returned."""

# <kernel>


@triton.jit
def fill_kernel(y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.zeros((BLOCK,), dtype=y_ptr.dtype.element_ty), mask=at < count)


def rms_norm(x, weight, eps, y):
    fill_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
    honest(x, weight, eps, y)
    return y
