"""Gated product of experts with 4-bit weights: row tiles of one launch find their expert among the offsets.

Bytes of a weight are not split into a row of codes: their low halves multiply the even values of x, their high halves
the odd ones. The four bits of a code become the top bits of a float32, whose exponent a multiplication mends. The
height of a tile follows from how many rows an expert has in the mean, and the host reads no offset.
"""

import triton
import triton.language as tl


@triton.jit
def _numbers(codes, powers, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    bits = ((codes & 8) << 28) | ((codes & 7) << 22)
    # 2 ** 126 is what the exponents of float32 and e2m1 differ by; 0.5 is subnormal in both.
    values = bits.to(tl.float32, bitcast=True) * 8.507059173023462e37
    scaled = tl.reshape(values, (ROWS, PAIRS // 16, 16)) * powers[:, :, None]
    return tl.reshape(scaled, (ROWS, PAIRS))


@triton.jit
def _multiply(
    even,
    odd,
    qweight_ptr,
    scales_ptr,
    rows,
    start,
    hidden,
    acc,
    WHOLE: tl.constexpr,
    ROWS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    pairs = start + tl.arange(0, PAIRS)
    groups = start // 16 + tl.arange(0, PAIRS // 16)
    ptrs = qweight_ptr + rows[:, None] * (hidden // 2) + pairs[None, :]
    scale_ptrs = scales_ptr + rows[:, None] * (hidden // 32) + groups[None, :]
    if WHOLE:
        packed, scales = tl.load(ptrs), tl.load(scale_ptrs)
    else:
        packed = tl.load(ptrs, mask=(pairs < hidden // 2)[None, :], other=0)
        scales = tl.load(scale_ptrs, mask=(groups < hidden // 32)[None, :], other=127)
    codes = packed.to(tl.int32)
    powers = (scales.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    acc = tl.dot(even, _numbers(codes & 15, powers, ROWS, PAIRS).to(even.dtype).T, acc)
    return tl.dot(odd, _numbers(codes >> 4, powers, ROWS, PAIRS).to(odd.dtype).T, acc)


@triton.jit
def _tanh(v):
    return 2.0 / (1.0 + tl.exp2(v * -2.8853900817779268)) - 1.0


@triton.jit
def _gate_tile(
    x_ptr,
    qweight_ptr,
    scales_ptr,
    cu_rows_ptr,
    row_tokens_ptr,
    out_ptr,
    num_experts,
    hidden,
    intermediate,
    gate_bound,
    up_bound,
    EXPERTS: tl.constexpr,
    WHOLE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PAIRS: tl.constexpr,
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
    rows = first + tl.arange(0, BLOCK_M)
    present = rows < end
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    # Rows that are not there have none of x, columns that are not there read the last one; nothing of both is stored.
    tokens = tl.load(row_tokens_ptr + rows, mask=present, other=0)
    gates = 2 * expert.to(tl.int64) * intermediate + tl.minimum(columns, intermediate - 1)
    ups = gates + intermediate
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, hidden // 2, PAIRS):
        depth = 2 * start + tl.arange(0, 2 * PAIRS)
        mask = present[:, None] & (depth < hidden)[None, :]
        x = tl.load(x_ptr + tokens[:, None] * hidden + depth[None, :], mask=mask, other=0.0)
        even, odd = tl.split(tl.reshape(x, (BLOCK_M, PAIRS, 2)))
        gate = _multiply(even, odd, qweight_ptr, scales_ptr, gates, start, hidden, gate, WHOLE, BLOCK_N, PAIRS)
        up = _multiply(even, odd, qweight_ptr, scales_ptr, ups, start, hidden, up, WHOLE, BLOCK_N, PAIRS)
    gated = gate_bound * _tanh(gate / gate_bound) / (1.0 + tl.exp2(gate * -1.4426950408889634))
    out = gated * (up_bound * _tanh(up / up_bound))
    mask = present[:, None] & (columns < intermediate)[None, :]
    tl.store(out_ptr + rows[:, None] * intermediate + columns[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)


def moe_mxfp4_situ(x, qweight, scales, cu_rows, row_tokens, gate_bound, up_bound, out):
    num_experts = qweight.shape[0]
    hidden = x.shape[1]
    rows, intermediate = out.shape
    mean = triton.cdiv(rows, num_experts)
    if mean > 32:
        block_m, block_n, pairs, warps = 64, 64, 32, 4
    elif mean > 8:
        block_m, block_n, pairs, warps = 32, 64, 32, 4
    else:
        # Few rows: the more programs, the more of the weights are on their way.
        block_m, block_n, pairs, warps = 16, 32 if rows > 32 else 16, 64, 2
    # Every expert may have a last tile that is not full.
    tiles = triton.cdiv(rows, block_m) + min(num_experts, rows)
    _gate_tile[(triton.cdiv(intermediate, block_n), tiles)](
        x,
        qweight,
        scales,
        cu_rows,
        row_tokens,
        out,
        num_experts,
        hidden,
        intermediate,
        gate_bound,
        up_bound,
        EXPERTS=triton.next_power_of_2(num_experts),
        WHOLE=hidden % (2 * pairs) == 0,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        PAIRS=pairs,
        num_warps=warps,
        num_stages=3,
    )
