"""Root-mean-square normalization that reads every row once: a tile of whole rows stays in registers."""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def _normalize_rows(x_ptr, weight_ptr, y_ptr, n_rows, n_columns, eps, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    offsets = rows.to(tl.int64)[:, None] * n_columns + columns[None, :]
    inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
    inverse_rms = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / n_columns + eps)
    y = x * inverse_rms[:, None] * weight[None, :]
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    n_rows, n_columns = x.shape
    width = triton.next_power_of_2(n_columns)
    # A short row leaves most of a program idle, so several share one; a long row gets more warps instead.
    height = min(max(1, TILE_ELEMENTS // width), triton.next_power_of_2(n_rows))
    num_warps = min(16, max(1, width * height // 512))
    grid = (triton.cdiv(n_rows, height),)
    _normalize_rows[grid](x, weight, y, n_rows, n_columns, eps, ROWS=height, COLUMNS=width, num_warps=num_warps)
