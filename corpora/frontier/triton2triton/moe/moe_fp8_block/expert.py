"""Experts in fp8: one launch sorts choices, and row tiles as tall as experts have rows read weights once for many rows.

Program e of the first launch counts the choices of the experts before e and lists its own. Programs of both products
find their expert by the tiles of those before it, so that the host reads nothing, no program idles over a rare expert
and none walks down a popular one. Neighbouring programs share the rows of x, or those of the quantized values.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _list_choices(topk_ids_ptr, offsets_ptr, listed_ptr, num_choices, num_experts, BLOCK: tl.constexpr):
    expert = tl.program_id(0)
    lower = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, num_choices, BLOCK):
        choices = start + tl.arange(0, BLOCK)
        ids = tl.load(topk_ids_ptr + choices, mask=choices < num_choices, other=num_experts)
        lower += (ids < expert).to(tl.int32)
    first = tl.sum(lower, axis=0)
    tl.store(offsets_ptr + expert, first)
    if expert == num_experts:
        return
    for start in range(0, num_choices, BLOCK):
        choices = start + tl.arange(0, BLOCK)
        own = (tl.load(topk_ids_ptr + choices, mask=choices < num_choices, other=num_experts) == expert).to(tl.int32)
        number = tl.sum(own, axis=0)
        if number > 0:
            tl.store(listed_ptr + first + tl.cumsum(own, axis=0) - 1, choices, mask=own > 0)
        first += number


@triton.jit
def _rows_of_tile(offsets_ptr, tile, num_experts, EXPERTS: tl.constexpr, ROWS: tl.constexpr):
    """The expert of a tile, its first row, and the end of the expert's rows; num_experts where there is none."""
    experts = tl.arange(0, EXPERTS)
    begins = tl.load(offsets_ptr + experts, mask=experts < num_experts, other=0)
    ends = tl.load(offsets_ptr + experts + 1, mask=experts < num_experts, other=0)
    tiles = (ends - begins + ROWS - 1) // ROWS
    expert = tl.sum((tl.cumsum(tiles, axis=0) <= tile).to(tl.int32), axis=0)
    expert = tl.minimum(expert, num_experts)
    before = tl.sum(tl.where(experts < expert, tiles, 0), axis=0)
    begin = tl.sum(tl.where(experts == expert, begins, 0), axis=0)
    end = tl.sum(tl.where(experts == expert, ends, 0), axis=0)
    return expert, begin + (tile - before) * ROWS, end


@triton.jit
def _gate_tile(
    x_ptr,
    x_scales_ptr,
    w13_ptr,
    w13_scales_ptr,
    offsets_ptr,
    listed_ptr,
    q_ptr,
    q_scales_ptr,
    num_experts,
    hidden,
    intermediate,
    top_k,
    largest,
    EXPERTS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    expert, first, end = _rows_of_tile(offsets_ptr, tl.program_id(1), num_experts, EXPERTS, ROWS)
    if expert >= num_experts:
        return
    block = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    columns = block * BLOCK + lanes
    blocks, steps = intermediate // BLOCK, hidden // BLOCK
    weights = expert.to(tl.int64) * 2 * intermediate
    rows = first + tl.arange(0, ROWS)
    present = rows < end
    tokens = tl.load(listed_ptr + rows, mask=present, other=0) // top_k
    x_ptrs = x_ptr + tokens[:, None] * hidden + lanes[None, :]
    gate_ptrs = w13_ptr + (weights + columns)[None, :] * hidden + lanes[:, None]
    up_ptrs = gate_ptrs + intermediate * hidden
    gate_scales = w13_scales_ptr + (expert * 2 * blocks + block) * steps
    up_scales = gate_scales + blocks * steps
    gate = tl.zeros((ROWS, BLOCK), tl.float32)
    up = tl.zeros((ROWS, BLOCK), tl.float32)
    for step in range(steps):
        x = tl.load(x_ptrs)
        scale = tl.load(x_scales_ptr + tokens * steps + step)
        gate += tl.dot(x, tl.load(gate_ptrs)) * (scale * tl.load(gate_scales + step))[:, None]
        up += tl.dot(x, tl.load(up_ptrs)) * (scale * tl.load(up_scales + step))[:, None]
        x_ptrs += BLOCK
        gate_ptrs += BLOCK
        up_ptrs += BLOCK
    h = gate * tl.sigmoid(gate) * up
    scales = tl.maximum(tl.max(tl.abs(h), axis=1), 1e-10) / largest
    q = tl.minimum(tl.maximum(h / scales[:, None], -largest), largest)
    ptrs = q_ptr + rows[:, None] * intermediate + columns[None, :]
    tl.store(ptrs, q.to(q_ptr.dtype.element_ty), mask=present[:, None])
    tl.store(q_scales_ptr + rows * blocks + block, scales, mask=present)


@triton.jit
def _multiply_tile(
    q_ptr,
    q_scales_ptr,
    w2_ptr,
    w2_scales_ptr,
    topk_weights_ptr,
    offsets_ptr,
    listed_ptr,
    y_ptr,
    num_experts,
    hidden,
    intermediate,
    EXPERTS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    expert, first, end = _rows_of_tile(offsets_ptr, tl.program_id(1), num_experts, EXPERTS, ROWS)
    if expert >= num_experts:
        return
    block = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    columns = block * BLOCK + lanes
    steps = intermediate // BLOCK
    rows = first + tl.arange(0, ROWS)
    present = rows < end
    given = tl.minimum(rows, end - 1)
    choices = tl.load(listed_ptr + given)
    q_ptrs = q_ptr + given[:, None] * intermediate + lanes[None, :]
    w_ptrs = w2_ptr + (expert.to(tl.int64) * hidden + columns)[None, :] * intermediate + lanes[:, None]
    scales_ptr = w2_scales_ptr + (expert * (hidden // BLOCK) + block) * steps
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for step in range(steps):
        scale = tl.load(q_scales_ptr + given * steps + step) * tl.load(scales_ptr + step)
        acc += tl.dot(tl.load(q_ptrs), tl.load(w_ptrs)) * scale[:, None]
        q_ptrs += BLOCK
        w_ptrs += BLOCK
    acc *= tl.load(topk_weights_ptr + choices)[:, None]
    tl.store(y_ptr + choices[:, None] * hidden + columns[None, :], acc, mask=present[:, None])


@triton.jit
def _add_choices(y_ptr, out_ptr, hidden, top_k, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < hidden
    total = tl.zeros((BLOCK,), tl.float32)
    for rank in range(top_k):
        total += tl.load(y_ptr + (token * top_k + rank) * hidden + columns, mask=inside, other=0.0)
    tl.store(out_ptr + token * hidden + columns, total.to(out_ptr.dtype.element_ty), mask=inside)


def moe_fp8_block(x, x_scales, w13, w13_scales, w2, w2_scales, topk_ids, topk_weights, out):
    num_tokens, hidden = x.shape
    num_experts, _, intermediate = w2.shape
    top_k = topk_ids.shape[1]
    num_choices = num_tokens * top_k

    def empty(dtype, *shape):
        return torch.empty(shape, dtype=dtype, device=x.device)

    offsets, listed = empty(torch.int32, num_experts + 1), empty(torch.int32, num_choices)
    q, q_scales = empty(x.dtype, num_choices, intermediate), empty(torch.float32, num_choices, intermediate // 128)
    y = empty(torch.float32, num_choices, hidden)
    _list_choices[(num_experts + 1,)](topk_ids, offsets, listed, num_choices, num_experts, BLOCK=2048, num_warps=8)
    mean = triton.cdiv(num_choices, num_experts)
    rows = 64 if mean > 48 else 32 if mean > 16 else 16
    # Every expert may have a last tile that is not full.
    tiles = triton.cdiv(num_choices, rows) + min(num_experts, num_choices)
    experts = triton.next_power_of_2(num_experts)
    _gate_tile[(intermediate // 128, tiles)](
        x,
        x_scales,
        w13,
        w13_scales,
        offsets,
        listed,
        q,
        q_scales,
        num_experts,
        hidden,
        intermediate,
        top_k,
        torch.finfo(x.dtype).max,
        EXPERTS=experts,
        ROWS=rows,
        BLOCK=128,
        num_warps=8 if rows == 64 else 4,
        num_stages=3,
    )
    _multiply_tile[(hidden // 128, tiles)](
        q,
        q_scales,
        w2,
        w2_scales,
        topk_weights,
        offsets,
        listed,
        y,
        num_experts,
        hidden,
        intermediate,
        EXPERTS=experts,
        ROWS=rows,
        BLOCK=128,
        num_warps=4,
        num_stages=3,
    )
    _add_choices[(num_tokens, triton.cdiv(hidden, 1024))](y, out, hidden, top_k, BLOCK=1024)
