"""expect: wrong_result in seen-01. Tuned in place: every configuration adds to the same sums, which are zero only at first."""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 256})], key=["n_columns"])
@triton.jit
def add_squares(x_ptr, total_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_columns + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
    tl.atomic_add(total_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def scale(x_ptr, weight_ptr, y_ptr, total_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    inverse = 1.0 / tl.sqrt(tl.load(total_ptr + row) / n_columns + eps)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=inside).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside).to(tl.float32)
    tl.store(y_ptr + row * n_columns + columns, (x * inverse * weight).to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    total = torch.zeros(rows, dtype=torch.float32, device=x.device)
    add_squares[lambda meta: (rows, triton.cdiv(columns, meta["BLOCK"]))](x, total, columns)
    scale[(rows, triton.cdiv(columns, 512))](x, weight, y, total, columns, eps, BLOCK=512)
