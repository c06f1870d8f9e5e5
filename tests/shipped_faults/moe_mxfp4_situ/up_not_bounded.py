"""expect: wrong_result in seen-03. Activation: up enters the product as it is, as in SwiGLU."""

import triton
import triton.language as tl


@triton.jit
def load_weight(qweight_ptr, scales_ptr, rows, inside, start, hidden, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    """Values start … start + DEPTH - 1 of some rows: (ROWS, DEPTH), float32."""
    pairs = start // 2 + tl.arange(0, DEPTH // 2)
    mask = inside[:, None] & (pairs < hidden // 2)[None, :]
    packed = tl.load(qweight_ptr + rows[:, None] * (hidden // 2) + pairs[None, :], mask=mask, other=0)
    codes = tl.reshape(tl.join(packed & 15, packed >> 4), (ROWS, DEPTH)).to(tl.int32)
    index = codes & 7
    # From index 2 on, a number is a power of two, or one and a half times that.
    number = tl.where(index < 2, index * 0.5, tl.exp2((index // 2 - 1).to(tl.float32)) * (1.0 + (index % 2) * 0.5))
    signed = tl.where(codes > 7, -number, number)
    groups = start // 32 + tl.arange(0, DEPTH // 32)
    mask = inside[:, None] & (groups < hidden // 32)[None, :]
    scales = tl.load(scales_ptr + rows[:, None] * (hidden // 32) + groups[None, :], mask=mask, other=127)
    powers = (scales.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    return tl.reshape(tl.reshape(signed, (ROWS, DEPTH // 32, 32)) * powers[:, :, None], (ROWS, DEPTH))


@triton.jit
def tanh(v):
    return 2.0 * tl.sigmoid(2.0 * v) - 1.0


@triton.jit
def gate_columns(
    x_ptr,
    qweight_ptr,
    scales_ptr,
    cu_rows_ptr,
    row_tokens_ptr,
    out_ptr,
    hidden,
    intermediate,
    gate_bound,
    up_bound,
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
        rows = first + tl.arange(0, BLOCK_M)
        present = (rows < end)[:, None]
        tokens = tl.load(row_tokens_ptr + rows, mask=rows < end, other=0)
        gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, hidden, BLOCK_K):
            depth = start + tl.arange(0, BLOCK_K)
            x_mask = present & (depth < hidden)[None, :]
            x = tl.load(x_ptr + tokens[:, None] * hidden + depth[None, :], mask=x_mask, other=0.0)
            w = load_weight(qweight_ptr, scales_ptr, gates, inside, start, hidden, BLOCK_N, BLOCK_K)
            gate = tl.dot(x, w.to(x.dtype).T, gate)
            w = load_weight(qweight_ptr, scales_ptr, ups, inside, start, hidden, BLOCK_N, BLOCK_K)
            up = tl.dot(x, w.to(x.dtype).T, up)
        gated = gate_bound * tanh(gate / gate_bound) * tl.sigmoid(gate)
        out = gated * up
        out_ptrs = out_ptr + rows[:, None] * intermediate + columns[None, :]
        tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=present & inside[None, :])


def moe_mxfp4_situ(x, qweight, scales, cu_rows, row_tokens, gate_bound, up_bound, out):
    num_experts = qweight.shape[0]
    intermediate = out.shape[1]
    gate_columns[(num_experts, triton.cdiv(intermediate, 32))](
        x,
        qweight,
        scales,
        cu_rows,
        row_tokens,
        out,
        x.shape[1],
        intermediate,
        gate_bound,
        up_bound,
        BLOCK_M=16,
        BLOCK_N=32,
        BLOCK_K=64,
    )
