"""Gated layer normalization in one pass: one program per row and group, which is held as one block."""

import triton
import triton.language as tl


@triton.jit
def normalize_group(
    x_ptr,
    z_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    rstd_ptr,
    eps,
    z_stride,
    row_size,
    group_size,
    NORM_BEFORE_GATE: tl.constexpr,
    RMS_NORM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    inside = lanes < group_size
    columns = tl.program_id(1) * group_size + lanes
    places = row * row_size + columns
    values = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    if z_ptr is not None:
        z = tl.load(z_ptr + row * z_stride + columns, mask=inside, other=0.0).to(tl.float32)
        gate = z / (1.0 + tl.exp(-z))
        if not NORM_BEFORE_GATE:
            values *= gate
    if not RMS_NORM:
        mean = tl.sum(values, axis=0) / group_size
        values = tl.where(inside, values - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(values * values, axis=0) / group_size + eps)
    tl.store(rstd_ptr + row * tl.num_programs(1) + tl.program_id(1), rstd)
    values *= rstd
    values *= tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    if bias_ptr is not None:
        values += tl.load(bias_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    if z_ptr is not None and NORM_BEFORE_GATE:
        values *= gate
    tl.store(y_ptr + places, values.to(y_ptr.dtype.element_ty), mask=inside)


def layernorm_gated(x, z, weight, bias, eps, norm_before_gate, rms_norm, y, rstd):
    row_size = x.shape[1]
    groups = rstd.shape[1]
    normalize_group[rstd.shape](
        x,
        z,
        weight,
        bias,
        y,
        rstd,
        eps,
        0 if z is None else z.stride(0),
        row_size,
        row_size // groups,
        NORM_BEFORE_GATE=norm_before_gate,
        RMS_NORM=rms_norm,
        BLOCK=triton.next_power_of_2(row_size // groups),
    )
