"""expect: wrong_result in heldout-25. Short sums: for one token sums over K are kept in 16 bits."""

import triton
import triton.language as tl


@triton.jit
def multiply_pairs(acc, even, odd, codes, scale, zero):
    """Adds the products with both codes of each byte."""
    low = ((codes & 15).to(tl.float32) - zero[None, :]) * scale[None, :]
    high = ((codes >> 4).to(tl.float32) - zero[None, :]) * scale[None, :]
    acc += tl.dot(even, low.to(even.dtype))
    return acc + tl.dot(odd, high.to(odd.dtype))


@triton.jit
def gate_columns(
    x_ptr,
    gate_ptr,
    gate_scales_ptr,
    gate_zeros_ptr,
    up_ptr,
    up_scales_ptr,
    up_zeros_ptr,
    out_ptr,
    M,
    N,
    K,
    group_size,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    rows = tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    in_rows, in_columns = rows < M, columns < N
    gate = tl.zeros((ROWS, COLUMNS), tl.float32)
    up = tl.zeros((ROWS, COLUMNS), tl.float32)
    for group in range(tl.cdiv(K, group_size)):
        places = group * N + columns
        gate_scale = tl.load(gate_scales_ptr + places, mask=in_columns, other=0.0).to(tl.float32)
        gate_zero = tl.load(gate_zeros_ptr + places, mask=in_columns, other=0).to(tl.float32)
        up_scale = tl.load(up_scales_ptr + places, mask=in_columns, other=0.0).to(tl.float32)
        up_zero = tl.load(up_zeros_ptr + places, mask=in_columns, other=0).to(tl.float32)
        first = group * (group_size // 2)
        end = tl.minimum(first + group_size // 2, K // 2)
        for start in range(first, end, PAIRS):
            pairs = start + tl.arange(0, PAIRS)
            inside = pairs < end
            x_ptrs = x_ptr + rows[:, None] * K + 2 * pairs[None, :]
            x_mask = in_rows[:, None] & inside[None, :]
            even = tl.load(x_ptrs, mask=x_mask, other=0.0)
            odd = tl.load(x_ptrs + 1, mask=x_mask, other=0.0)
            offsets = pairs[:, None] * N + columns[None, :]
            mask = inside[:, None] & in_columns[None, :]
            codes = tl.load(gate_ptr + offsets, mask=mask, other=0)
            gate = multiply_pairs(gate, even, odd, codes, gate_scale, gate_zero)
            codes = tl.load(up_ptr + offsets, mask=mask, other=0)
            up = multiply_pairs(up, even, odd, codes, up_scale, up_zero)
    out = gate * tl.sigmoid(gate) * up
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=in_rows[:, None] & in_columns[None, :])


@triton.jit
def gate_token(
    x_ptr,
    gate_ptr,
    gate_scales_ptr,
    gate_zeros_ptr,
    up_ptr,
    up_scales_ptr,
    up_zeros_ptr,
    out_ptr,
    N,
    K,
    group_size,
    COLUMNS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """One token: no tile of rows."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    in_columns = columns < N
    dtype = x_ptr.dtype.element_ty
    gate = tl.zeros((COLUMNS,), tl.float32).to(dtype)
    up = tl.zeros((COLUMNS,), tl.float32).to(dtype)
    for group in range(tl.cdiv(K, group_size)):
        places = group * N + columns
        gate_scale = tl.load(gate_scales_ptr + places, mask=in_columns, other=0.0).to(tl.float32)
        gate_zero = tl.load(gate_zeros_ptr + places, mask=in_columns, other=0).to(tl.float32)
        up_scale = tl.load(up_scales_ptr + places, mask=in_columns, other=0.0).to(tl.float32)
        up_zero = tl.load(up_zeros_ptr + places, mask=in_columns, other=0).to(tl.float32)
        first = group * (group_size // 2)
        end = tl.minimum(first + group_size // 2, K // 2)
        for start in range(first, end, PAIRS):
            pairs = start + tl.arange(0, PAIRS)
            inside = pairs < end
            even = tl.load(x_ptr + 2 * pairs, mask=inside, other=0.0).to(tl.float32)[:, None]
            odd = tl.load(x_ptr + 2 * pairs + 1, mask=inside, other=0.0).to(tl.float32)[:, None]
            offsets = pairs[:, None] * N + columns[None, :]
            mask = inside[:, None] & in_columns[None, :]
            codes = tl.load(gate_ptr + offsets, mask=mask, other=0)
            part = even * ((codes & 15).to(tl.float32) - gate_zero[None, :])
            part += odd * ((codes >> 4).to(tl.float32) - gate_zero[None, :])
            gate = (gate.to(tl.float32) + tl.sum(part, axis=0) * gate_scale).to(dtype)
            codes = tl.load(up_ptr + offsets, mask=mask, other=0)
            part = even * ((codes & 15).to(tl.float32) - up_zero[None, :])
            part += odd * ((codes >> 4).to(tl.float32) - up_zero[None, :])
            up = (up.to(tl.float32) + tl.sum(part, axis=0) * up_scale).to(dtype)
    wide = gate.to(tl.float32)
    out = wide * tl.sigmoid(wide) * up.to(tl.float32)
    tl.store(out_ptr + columns, out.to(dtype), mask=in_columns)


def w4a16_gated_gemv(x, gate_qweight, gate_scales, gate_zeros, up_qweight, up_scales, up_zeros, group_size, out):
    M, N = out.shape
    if M == 1:
        gate_token[(triton.cdiv(N, 64),)](
            x,
            gate_qweight,
            gate_scales,
            gate_zeros,
            up_qweight,
            up_scales,
            up_zeros,
            out,
            N,
            x.shape[1],
            group_size,
            COLUMNS=64,
            PAIRS=16,
        )
        return
    gate_columns[(triton.cdiv(N, 64),)](
        x,
        gate_qweight,
        gate_scales,
        gate_zeros,
        up_qweight,
        up_scales,
        up_zeros,
        out,
        M,
        N,
        x.shape[1],
        group_size,
        ROWS=16,
        COLUMNS=64,
        PAIRS=16,
    )
