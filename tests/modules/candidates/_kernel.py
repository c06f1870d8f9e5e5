import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def norm(x_ptr, w_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(y_ptr + row * n + cols, (x * scale * w).to(y_ptr.dtype.element_ty), mask=inside)


def normalized(x, weight, eps):
    y = torch.empty_like(x)
    n = x.shape[-1]
    norm[(x.numel() // n,)](x, weight, y, n, eps, BLOCK=triton.next_power_of_2(n))
    return y
