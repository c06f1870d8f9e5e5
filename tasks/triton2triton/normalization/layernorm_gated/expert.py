"""Gated layer normalization of a tile of groups per program: short groups share one, a long one gets more warps."""

import triton
import triton.language as tl

TILE_ELEMENTS = 2048
ENOUGH_PROGRAMS = 1024
LONG_GROUP = 4096


@triton.jit
def normalize_tile(
    x_ptr,
    z_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    rstd_ptr,
    eps,
    z_stride,
    count,
    groups_of_row,
    group_size,
    NORM_BEFORE_GATE: tl.constexpr,
    RMS_NORM: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    # Rows of x and y are contiguous, so groups are numbered through all of them.
    groups = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    lanes = tl.arange(0, WIDTH)
    mask = (groups < count)[:, None] & (lanes < group_size)[None, :]
    places = groups[:, None] * group_size + lanes[None, :]
    columns = (groups % groups_of_row)[:, None] * group_size + lanes[None, :]
    # All loads go out before the first result is waited for.
    values = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    if z_ptr is not None:
        z = tl.load(z_ptr + (groups // groups_of_row)[:, None] * z_stride + columns, mask=mask, other=0.0).to(
            tl.float32
        )
        gate = z / (1.0 + tl.exp2(z * -1.4426950408889634))
        if not NORM_BEFORE_GATE:
            values *= gate
    if not RMS_NORM:
        mean = tl.sum(values, axis=1) / group_size
        values = tl.where(mask, values - mean[:, None], 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(values * values, axis=1) / group_size + eps)
    tl.store(rstd_ptr + groups, rstd, mask=groups < count)
    values *= rstd[:, None] * weight
    if bias_ptr is not None:
        values += tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    if z_ptr is not None and NORM_BEFORE_GATE:
        values *= gate
    tl.store(y_ptr + places, values.to(y_ptr.dtype.element_ty), mask=mask)


def layernorm_gated(x, z, weight, bias, eps, norm_before_gate, rms_norm, y, rstd):
    rows, groups_of_row = rstd.shape
    group_size = x.shape[1] // groups_of_row
    count = rows * groups_of_row
    width = triton.next_power_of_2(group_size)
    groups = min(max(1, TILE_ELEMENTS // width), triton.next_power_of_2(max(1, count // ENOUGH_PROGRAMS)))
    # 16 values of each tensor to a thread: with 32, registers leave room for 20 warps on a multiprocessor. Long groups
    # have 32 all the same, since their sums are then combined among half as many warps.
    values_of_thread = 32 if width > LONG_GROUP else 16
    normalize_tile[(triton.cdiv(count, groups),)](
        x,
        z,
        weight,
        bias,
        y,
        rstd,
        eps,
        0 if z is None else z.stride(0),
        count,
        groups_of_row,
        group_size,
        NORM_BEFORE_GATE=norm_before_gate,
        RMS_NORM=rms_norm,
        GROUPS=groups,
        WIDTH=width,
        num_warps=min(16, max(1, groups * width // (32 * values_of_thread))),
    )
