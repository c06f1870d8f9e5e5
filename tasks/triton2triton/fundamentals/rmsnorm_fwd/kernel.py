"""RMS normalization by a fixed number of programs, each of which walks over rows; two passes over tiles of a row."""

import triton
import triton.language as tl

PROGRAMS = 2048
LEAST_ELEMENTS = 1024  # of one program
TILE = 512


@triton.jit
def normalise_rows(
    x_ptr,
    weight_ptr,
    y_ptr,
    rstd_ptr,
    eps,
    x_stride,
    rows,
    columns,
    ZERO_CENTERED: tl.constexpr,
    WIDTH: tl.constexpr,
):
    lanes = tl.arange(0, WIDTH)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        base = row.to(tl.int64) * columns
        x_row = x_ptr + row.to(tl.int64) * x_stride
        squares = tl.zeros((WIDTH,), tl.float32)
        for start in range(0, columns, WIDTH):
            i = start + lanes
            x = tl.load(x_row + i, mask=i < columns, other=0.0).to(tl.float32)
            squares += x * x
        rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
        for start in range(0, columns, WIDTH):
            i = start + lanes
            x = tl.load(x_row + i, mask=i < columns).to(tl.float32)
            gain = tl.load(weight_ptr + i, mask=i < columns).to(tl.float32)
            if ZERO_CENTERED:
                gain += 1.0
            tl.store(y_ptr + base + i, (x * rstd * gain).to(y_ptr.dtype.element_ty), mask=i < columns)
        tl.store(rstd_ptr + row, rstd)


def rmsnorm_fwd(x, weight, eps, zero_centered, y, rstd):
    rows, columns = x.shape
    programs = min(rows, PROGRAMS, triton.cdiv(rows * columns, LEAST_ELEMENTS))
    normalise_rows[(programs,)](
        x, weight, y, rstd, eps, x.stride(0), rows, columns, ZERO_CENTERED=bool(zero_centered), WIDTH=TILE
    )
