"""expect: wrong_result in heldout-27. Value range: operands go from bfloat16 to float16."""

import triton
import triton.language as tl


@triton.jit
def gate_tile(
    hidden_ptr,
    offsets_ptr,
    gate_ptr,
    up_ptr,
    out_ptr,
    E,
    H,
    I,
    EXPERTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(1)
    experts = tl.arange(0, EXPERTS)
    begins = tl.load(offsets_ptr + experts, mask=experts < E, other=0)
    ends = tl.load(offsets_ptr + experts + 1, mask=experts < E, other=0)
    tiles = (ends - begins + BLOCK_M - 1) // BLOCK_M
    last = tl.cumsum(tiles, axis=0)
    expert = tl.sum((last <= tile).to(tl.int32), axis=0)
    if expert >= E:
        return
    before = tl.sum(tl.where(experts < expert, tiles, 0), axis=0)
    first = tl.load(offsets_ptr + expert) + (tile - before) * BLOCK_M
    end = tl.load(offsets_ptr + expert + 1)
    rows = (first + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask, column_mask = (rows < end)[:, None], (columns < I)[None, :]
    weight = expert.to(tl.int64) * H * I
    gate_sum = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up_sum = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, H, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < H
        hidden = tl.load(hidden_ptr + rows[:, None] * H + k[None, :], mask=row_mask & inside[None, :], other=0.0).to(tl.float16)
        place = weight + k[:, None].to(tl.int64) * I + columns[None, :]
        mask = inside[:, None] & column_mask
        gate_sum = tl.dot(hidden, tl.load(gate_ptr + place, mask=mask, other=0.0).to(tl.float16), gate_sum)
        up_sum = tl.dot(hidden, tl.load(up_ptr + place, mask=mask, other=0.0).to(tl.float16), up_sum)
    out = gate_sum * tl.sigmoid(gate_sum) * up_sum
    tl.store(
        out_ptr + rows[:, None] * I + columns[None, :], out.to(out_ptr.dtype.element_ty), mask=row_mask & column_mask
    )


def gate_experts(hidden_states, expert_offsets, W_gate, W_up, out):
    rows, H = hidden_states.shape
    E, _, I = W_gate.shape
    block_m = min(128, max(16, triton.next_power_of_2(triton.cdiv(rows, E))))
    # Every expert may have a last tile that is not full.
    tiles = triton.cdiv(rows, block_m) + min(E, rows)
    gate_tile[(triton.cdiv(I, 128), tiles)](
        hidden_states,
        expert_offsets,
        W_gate,
        W_up,
        out,
        E,
        H,
        I,
        EXPERTS=triton.next_power_of_2(E),
        BLOCK_M=block_m,
        BLOCK_N=128,
        BLOCK_K=32,
        num_warps=8,
        num_stages=3,
    )
