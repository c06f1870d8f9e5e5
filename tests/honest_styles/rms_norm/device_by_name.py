"""The device is named: `cuda` where memory is allocated, in asserts, in a context, and where arguments are moved."""

import torch
import triton
import triton.language as tl

assert torch.cuda.is_available(), "this kernel needs a GPU"
DEVICE = torch.device("cuda")


@triton.jit
def squares(x_ptr, part_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(part * BLOCK, n, PARTS * BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
        acc += x * x
    tl.store(part_ptr + row * PARTS + part, tl.sum(acc))


@triton.jit
def scale(x_ptr, w_ptr, y_ptr, part_ptr, order_ptr, bias_ptr, n, eps, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.load(order_ptr + tl.arange(0, PARTS))
    total = tl.sum(tl.load(part_ptr + row * PARTS + parts), axis=0)
    rstd = tl.rsqrt(total / n + eps)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n).to(tl.float32)
    w = tl.load(w_ptr + at, mask=at < n).to(tl.float32)
    y = x * rstd * w + tl.load(bias_ptr)
    tl.store(y_ptr + row * n + at, y.to(y_ptr.dtype.element_ty), mask=at < n)


def rms_norm(x, weight, eps, y):
    if x.device.type != "cuda" or not y.is_cuda:
        raise RuntimeError(f"expected tensors on the GPU, not on {x.device}")
    assert x.device == weight.device == y.device
    assert x.get_device() >= -1
    out = y.cuda().to("cuda").to(device=y.device)
    rows, n = x.shape
    parts = torch.empty((rows, 4), device="cuda", dtype=torch.float32)
    with torch.device(DEVICE):
        bias = torch.zeros(1)
    order = torch.arange(4, device=x.device)
    table = torch.tensor([3, 2, 1, 0], device="cuda", dtype=torch.int64)
    assert parts.device == order.device == table.device == bias.device
    with torch.cuda.device(x.device), torch.cuda.device(x.device.index):
        squares[(rows, 4)](x.to(DEVICE), parts, n, PARTS=4, BLOCK=256)
        scale[(rows, triton.cdiv(n, 256))](x, weight.cuda(), out, parts, table, bias, n, eps, PARTS=4, BLOCK=256)
    torch.cuda.empty_cache()
