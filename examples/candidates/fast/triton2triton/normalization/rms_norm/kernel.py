"""Fast: correct on the whole domain and really faster. A row is read once and stays in registers."""

import triton
import triton.language as tl


@triton.jit
def _whole_row(x_ptr, weight_ptr, y_ptr, n, eps, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    keep = at < n
    first = tl.program_id(0).to(tl.int64) * n
    x = tl.load(x_ptr + first + at, mask=keep, other=0.0, eviction_policy="evict_first").to(tl.float32)
    w = tl.load(weight_ptr + at, mask=keep, other=0.0, eviction_policy="evict_last").to(tl.float32)
    y = x * w * tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(y_ptr + first + at, y.to(y_ptr.dtype.element_ty), mask=keep)


def rms_norm(x, weight, eps, y):
    """x, y: (rows, columns); weight: (columns,)."""
    rows, n = x.shape
    width = triton.next_power_of_2(n)
    _whole_row[(rows,)](x, weight, y, n, eps, WIDTH=width, num_warps=min(16, max(1, width // 512)))
