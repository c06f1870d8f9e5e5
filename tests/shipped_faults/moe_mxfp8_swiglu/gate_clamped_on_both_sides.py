"""expect: wrong_result in heldout-13. Clamp: gates are bounded from below as well, as only ups are."""

import triton
import triton.language as tl


@triton.jit
def load_scaled(ptr, scales_ptr, rows, present, start, hidden, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    """Values start … start + DEPTH - 1 of some rows, exact in bfloat16: (ROWS, DEPTH)."""
    depth = start + tl.arange(0, DEPTH)
    mask = present[:, None] & (depth < hidden)[None, :]
    codes = tl.load(ptr + rows[:, None] * hidden + depth[None, :], mask=mask, other=0.0)
    groups = start // 32 + tl.arange(0, DEPTH // 32)
    mask = present[:, None] & (groups < hidden // 32)[None, :]
    scales = tl.load(scales_ptr + rows[:, None] * (hidden // 32) + groups[None, :], mask=mask, other=127)
    factors = (scales.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    values = tl.reshape(codes.to(tl.float32), (ROWS, DEPTH // 32, 32)) * factors[:, :, None]
    return tl.reshape(values, (ROWS, DEPTH)).to(tl.bfloat16)


@triton.jit
def gate_columns(
    x_ptr,
    x_scales_ptr,
    weight_ptr,
    weight_scales_ptr,
    cu_rows_ptr,
    out_ptr,
    hidden,
    intermediate,
    alpha,
    limit,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    expert = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = columns < intermediate
    gates = 2 * expert * intermediate + columns
    ups = gates + intermediate
    end = tl.load(cu_rows_ptr + expert + 1)
    for first in range(tl.load(cu_rows_ptr + expert), end, BLOCK_M):
        rows = (first + tl.arange(0, BLOCK_M)).to(tl.int64)
        present = rows < end
        gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, hidden, BLOCK_K):
            x = load_scaled(x_ptr, x_scales_ptr, rows, present, start, hidden, BLOCK_M, BLOCK_K)
            w = load_scaled(weight_ptr, weight_scales_ptr, gates, inside, start, hidden, BLOCK_N, BLOCK_K)
            gate = tl.dot(x, w.T, gate)
            w = load_scaled(weight_ptr, weight_scales_ptr, ups, inside, start, hidden, BLOCK_N, BLOCK_K)
            up = tl.dot(x, w.T, up)
        gate = tl.minimum(tl.maximum(gate, -limit), limit)
        up = tl.minimum(tl.maximum(up, -limit), limit)
        out = gate * tl.sigmoid(alpha * gate) * (up + 1.0)
        mask = present[:, None] & inside[None, :]
        tl.store(out_ptr + rows[:, None] * intermediate + columns[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)


def moe_mxfp8_swiglu(x, x_scales, weight, weight_scales, cu_rows, alpha, limit, out):
    num_experts, hidden = weight.shape[0], weight.shape[2]
    intermediate = out.shape[1]
    gate_columns[(num_experts, triton.cdiv(intermediate, 64))](
        x,
        x_scales,
        weight,
        weight_scales,
        cu_rows,
        out,
        hidden,
        intermediate,
        alpha,
        limit,
        BLOCK_M=32,
        BLOCK_N=64,
        BLOCK_K=128,
    )
