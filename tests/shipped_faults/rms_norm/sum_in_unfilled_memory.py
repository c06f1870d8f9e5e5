"""expect: wrong_result in seen-01. Unfilled memory: squares are added up in a tensor that nothing has set to zero."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_squares(x_ptr, total_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_columns + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
    tl.atomic_add(total_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def scale(x_ptr, weight_ptr, y_ptr, total_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n_columns
    inverse = 1.0 / tl.sqrt(tl.load(total_ptr + row) / n_columns + eps)
    x = tl.load(x_ptr + row * n_columns + columns, mask=inside).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside).to(tl.float32)
    tl.store(y_ptr + row * n_columns + columns, (x * inverse * weight).to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    total = torch.empty(rows, dtype=torch.float32, device=x.device)
    grid = (rows, triton.cdiv(columns, 512))
    add_squares[grid](x, total, columns, BLOCK=512)
    scale[grid](x, weight, y, total, columns, eps, BLOCK=512)
