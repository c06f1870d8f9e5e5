"""Gated product of a mixture of experts in MXFP8: one launch over row tiles, which find their expert among the offsets.

Tiles are tall where experts have many rows, so that weights are read and scaled once for many of them, and narrow where
rows are few, so that enough programs read weights. Neighbouring programs share the columns of an expert. The grid holds
as many tiles as the worst distribution of rows needs: the host reads no offset.
"""

import triton
import triton.language as tl


@triton.jit
def _load_scaled(ptr, scales_ptr, rows, start, hidden, ROWS: tl.constexpr, DEPTH: tl.constexpr, WHOLE: tl.constexpr):
    depth = start + tl.arange(0, DEPTH)
    groups = start // 32 + tl.arange(0, DEPTH // 32)
    ptrs = ptr + rows[:, None] * hidden + depth[None, :]
    scale_ptrs = scales_ptr + rows[:, None] * (hidden // 32) + groups[None, :]
    if WHOLE:
        codes = tl.load(ptrs)
        scales = tl.load(scale_ptrs)
    else:
        codes = tl.load(ptrs, mask=(depth < hidden)[None, :], other=0.0)
        scales = tl.load(scale_ptrs, mask=(groups < hidden // 32)[None, :], other=127)
    factors = (scales.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    values = tl.reshape(codes.to(tl.float32), (ROWS, DEPTH // 32, 32)) * factors[:, :, None]
    return tl.reshape(values, (ROWS, DEPTH)).to(tl.bfloat16)


@triton.jit
def _gate_tile(
    x_ptr,
    x_scales_ptr,
    weight_ptr,
    weight_scales_ptr,
    cu_rows_ptr,
    out_ptr,
    num_experts,
    hidden,
    intermediate,
    alpha,
    limit,
    EXPERTS: tl.constexpr,
    WHOLE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(1)
    experts = tl.arange(0, EXPERTS)
    begins = tl.load(cu_rows_ptr + experts, mask=experts < num_experts, other=0)
    ends = tl.load(cu_rows_ptr + experts + 1, mask=experts < num_experts, other=0)
    tiles = (ends - begins + BLOCK_M - 1) // BLOCK_M
    last = tl.cumsum(tiles, axis=0)
    expert = tl.sum((last <= tile).to(tl.int32), axis=0)
    if expert >= num_experts:
        return
    before = tl.sum(tl.where(experts < expert, tiles, 0), axis=0)
    first = tl.load(cu_rows_ptr + expert) + (tile - before) * BLOCK_M
    end = tl.load(cu_rows_ptr + expert + 1)
    rows = (first + tl.arange(0, BLOCK_M)).to(tl.int64)
    present = rows < end
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = columns < intermediate
    # What lies outside reads the last row or column, which saves masks in the loop; nothing of it is stored.
    x_rows = tl.where(present, rows, end - 1)
    gates = 2 * expert.to(tl.int64) * intermediate + tl.minimum(columns, intermediate - 1)
    ups = gates + intermediate
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, hidden, BLOCK_K):
        x = _load_scaled(x_ptr, x_scales_ptr, x_rows, start, hidden, BLOCK_M, BLOCK_K, WHOLE)
        w = _load_scaled(weight_ptr, weight_scales_ptr, gates, start, hidden, BLOCK_N, BLOCK_K, WHOLE)
        gate = tl.dot(x, w.T, gate)
        w = _load_scaled(weight_ptr, weight_scales_ptr, ups, start, hidden, BLOCK_N, BLOCK_K, WHOLE)
        up = tl.dot(x, w.T, up)
    gate = tl.minimum(gate, limit)
    up = tl.minimum(tl.maximum(up, -limit), limit)
    out = gate * (up + 1.0) / (1.0 + tl.exp2(gate * (-1.4426950408889634 * alpha)))
    mask = present[:, None] & inside[None, :]
    tl.store(out_ptr + rows[:, None] * intermediate + columns[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)


def moe_mxfp8_swiglu(x, x_scales, weight, weight_scales, cu_rows, alpha, limit, out):
    num_experts, hidden = weight.shape[0], weight.shape[2]
    rows, intermediate = out.shape
    mean = triton.cdiv(rows, num_experts)
    if mean > 48:
        block_m, block_n, block_k, warps = 128, 64, 64, 8
    elif mean > 8:
        block_m, block_n, block_k, warps = 32, 64, 128, 4
    else:
        # Few rows: the more programs, the more of the weights are on their way.
        block_m, block_n, block_k, warps = 16, 32 if rows > 32 else 16, 128, 4
    # Every expert may have a last tile that is not full.
    tiles = triton.cdiv(rows, block_m) + min(num_experts, rows)
    _gate_tile[(triton.cdiv(intermediate, block_n), tiles)](
        x,
        x_scales,
        weight,
        weight_scales,
        cu_rows,
        out,
        num_experts,
        hidden,
        intermediate,
        alpha,
        limit,
        EXPERTS=triton.next_power_of_2(num_experts),
        WHOLE=hidden % block_k == 0,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=warps,
        num_stages=3,
    )
