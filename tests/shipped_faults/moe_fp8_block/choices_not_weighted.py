"""expect: wrong_result in seen-01. Weighted sum: the experts of a token are added up as if each had the weight 1."""

import torch
import triton
import triton.language as tl


@triton.jit
def count_choices(topk_ids_ptr, counts_ptr, num_choices, BLOCK: tl.constexpr):
    expert = tl.program_id(0)
    counts = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, num_choices, BLOCK):
        choices = start + tl.arange(0, BLOCK)
        counts += (tl.load(topk_ids_ptr + choices, mask=choices < num_choices, other=-1) == expert).to(tl.int32)
    tl.store(counts_ptr + expert, tl.sum(counts, axis=0))


@triton.jit
def list_choices(
    topk_ids_ptr, counts_ptr, offsets_ptr, listed_ptr, num_choices, EXPERTS: tl.constexpr, BLOCK: tl.constexpr
):
    """The choices of one expert in order, behind those of the experts before it."""
    expert = tl.program_id(0)
    experts = tl.arange(0, EXPERTS)
    first = tl.sum(tl.load(counts_ptr + experts, mask=experts < expert, other=0), axis=0)
    tl.store(offsets_ptr + expert, first)
    for start in range(0, num_choices, BLOCK):
        choices = start + tl.arange(0, BLOCK)
        own = (tl.load(topk_ids_ptr + choices, mask=choices < num_choices, other=-1) == expert).to(tl.int32)
        tl.store(listed_ptr + first + tl.cumsum(own, axis=0) - 1, choices, mask=own > 0)
        first += tl.sum(own, axis=0)


@triton.jit
def gate_block(
    x_ptr,
    x_scales_ptr,
    w13_ptr,
    w13_scales_ptr,
    counts_ptr,
    offsets_ptr,
    listed_ptr,
    q_ptr,
    q_scales_ptr,
    hidden,
    intermediate,
    top_k,
    largest,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    expert = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    columns = block * BLOCK + lanes
    blocks, steps = intermediate // BLOCK, hidden // BLOCK
    gate_ptr = w13_ptr + (2 * expert * intermediate + columns)[None, :] * hidden
    up_ptr = gate_ptr + intermediate * hidden
    gate_scales_ptr = w13_scales_ptr + (2 * expert * blocks + block) * steps
    up_scales_ptr = gate_scales_ptr + blocks * steps
    first = tl.load(offsets_ptr + expert)
    end = first + tl.load(counts_ptr + expert)
    for start in range(first, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        present = rows < end
        choices = tl.load(listed_ptr + rows, mask=present, other=0)
        tokens = choices // top_k
        gate = tl.zeros((ROWS, BLOCK), tl.float32)
        up = tl.zeros((ROWS, BLOCK), tl.float32)
        for step in range(steps):
            depth = step * BLOCK + lanes
            x = tl.load(x_ptr + tokens[:, None] * hidden + depth[None, :])
            scale = tl.load(x_scales_ptr + tokens * steps + step)[:, None]
            gate += tl.dot(x, tl.load(gate_ptr + depth[:, None])) * (scale * tl.load(gate_scales_ptr + step))
            up += tl.dot(x, tl.load(up_ptr + depth[:, None])) * (scale * tl.load(up_scales_ptr + step))
        h = gate * tl.sigmoid(gate) * up
        scales = tl.maximum(tl.max(tl.abs(h), axis=1), 1e-10) / largest
        q = tl.minimum(tl.maximum(h / scales[:, None], -largest), largest)
        ptrs = q_ptr + rows[:, None] * intermediate + columns[None, :]
        tl.store(ptrs, q.to(q_ptr.dtype.element_ty), mask=present[:, None])
        tl.store(q_scales_ptr + rows * blocks + block, scales, mask=present)


@triton.jit
def multiply_block(
    q_ptr,
    q_scales_ptr,
    w2_ptr,
    w2_scales_ptr,
    topk_weights_ptr,
    counts_ptr,
    offsets_ptr,
    listed_ptr,
    y_ptr,
    hidden,
    intermediate,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    expert = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    columns = block * BLOCK + lanes
    steps = intermediate // BLOCK
    weight_ptr = w2_ptr + (expert * hidden + columns)[None, :] * intermediate
    scales_ptr = w2_scales_ptr + (expert * (hidden // BLOCK) + block) * steps
    first = tl.load(offsets_ptr + expert)
    end = first + tl.load(counts_ptr + expert)
    for start in range(first, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        present = rows < end
        acc = tl.zeros((ROWS, BLOCK), tl.float32)
        for step in range(steps):
            depth = step * BLOCK + lanes
            q = tl.load(q_ptr + rows[:, None] * intermediate + depth[None, :], mask=present[:, None], other=0.0)
            scale = tl.load(q_scales_ptr + rows * steps + step, mask=present, other=0.0)[:, None]
            acc += tl.dot(q, tl.load(weight_ptr + depth[:, None])) * (scale * tl.load(scales_ptr + step))
        choices = tl.load(listed_ptr + rows, mask=present, other=0)
        tl.store(y_ptr + choices[:, None] * hidden + columns[None, :], acc, mask=present[:, None])


@triton.jit
def add_choices(y_ptr, out_ptr, hidden, top_k, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for rank in range(top_k):
        total += tl.load(y_ptr + (token * top_k + rank) * hidden + columns)
    tl.store(out_ptr + token * hidden + columns, total.to(out_ptr.dtype.element_ty))


def moe_fp8_block(x, x_scales, w13, w13_scales, w2, w2_scales, topk_ids, topk_weights, out):
    num_tokens, hidden = x.shape
    num_experts, _, intermediate = w2.shape
    top_k = topk_ids.shape[1]
    num_choices = num_tokens * top_k

    def empty(dtype, *shape):
        return torch.empty(shape, dtype=dtype, device=x.device)

    counts, offsets = empty(torch.int32, num_experts), empty(torch.int32, num_experts)
    listed = empty(torch.int32, num_choices)
    q, q_scales = empty(x.dtype, num_choices, intermediate), empty(torch.float32, num_choices, intermediate // 128)
    y = empty(torch.float32, num_choices, hidden)
    count_choices[(num_experts,)](topk_ids, counts, num_choices, BLOCK=1024)
    list_choices[(num_experts,)](
        topk_ids,
        counts,
        offsets,
        listed,
        num_choices,
        EXPERTS=triton.next_power_of_2(num_experts),
        BLOCK=1024,
    )
    gate_block[(num_experts, intermediate // 128)](
        x,
        x_scales,
        w13,
        w13_scales,
        counts,
        offsets,
        listed,
        q,
        q_scales,
        hidden,
        intermediate,
        top_k,
        torch.finfo(x.dtype).max,
        ROWS=16,
        BLOCK=128,
    )
    multiply_block[(num_experts, hidden // 128)](
        q,
        q_scales,
        w2,
        w2_scales,
        topk_weights,
        counts,
        offsets,
        listed,
        y,
        hidden,
        intermediate,
        ROWS=16,
        BLOCK=128,
    )
    add_choices[(num_tokens, hidden // 128)](y, out, hidden, top_k, BLOCK=128)
