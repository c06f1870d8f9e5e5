"""expect: wrong_result in seen-02. Packed rows: the high four bits are taken for the first of the two rows."""

import triton
import triton.language as tl


@triton.jit
def multiply_pairs(acc, even, odd, codes, scale, zero):
    """Adds the products with both codes of each byte."""
    low = ((codes >> 4).to(tl.float32) - zero[None, :]) * scale[None, :]
    high = ((codes & 15).to(tl.float32) - zero[None, :]) * scale[None, :]
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


def w4a16_gated_gemv(
    x, gate_qweight, gate_scales, gate_zeros, up_qweight, up_scales, up_zeros, group_size, out
):
    M, N = out.shape
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
