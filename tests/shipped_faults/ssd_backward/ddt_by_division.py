"""expect: wrong_result in heldout-31. Division by zero: the gradient by a step size is taken from that by x, over the step size."""

import torch
import triton
import triton.language as tl

CHUNK = 64


@triton.jit
def walk_row(
    values_ptr,
    dt_ptr,
    A_ptr,
    factors_ptr,
    held_ptr,
    seq_len,
    num_heads,
    num_groups,
    head_dim,
    state_dim,
    num_chunks,
    BACKWARDS: tl.constexpr,
    VALUES: tl.constexpr,
    STATE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """States before every chunk, or their gradients behind it: (batch, chunks, num_heads, head_dim, state_dim)."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    group = head // (num_heads // num_groups)
    A = tl.load(A_ptr + head)
    places = tl.arange(0, CHUNK)
    values = tl.arange(0, VALUES)
    dims = tl.arange(0, STATE)
    held_offsets = values[:, None] * state_dim + dims[None, :]
    held_mask = (values < head_dim)[:, None] & (dims < state_dim)[None, :]
    state = tl.zeros((VALUES, STATE), tl.float32)
    for step in range(num_chunks):
        chunk = num_chunks - 1 - step if BACKWARDS else step
        held = ((row * num_chunks + chunk) * num_heads + head) * head_dim * state_dim
        tl.store(held_ptr + held + held_offsets, state, mask=held_mask)
        tokens = chunk * CHUNK + places
        inside = tokens < seq_len
        lines = row * seq_len + tokens
        dt = tl.load(dt_ptr + lines * num_heads + head, mask=inside, other=0.0)
        sums = tl.cumsum(dt * A, axis=0)
        total = tl.sum(dt * A, axis=0)
        value_ptrs = values_ptr + (lines * num_heads + head)[:, None] * head_dim + values[None, :]
        chunk_values = tl.load(value_ptrs, mask=inside[:, None] & (values < head_dim)[None, :], other=0.0)
        factor_ptrs = factors_ptr + (lines * num_groups + group)[:, None] * state_dim + dims[None, :]
        factors = tl.load(factor_ptrs, mask=inside[:, None] & (dims < state_dim)[None, :], other=0.0)
        weights = tl.exp(sums) if BACKWARDS else dt * tl.exp(total - sums)
        weighted = (weights[:, None] * chunk_values.to(tl.float32)).to(factors.dtype)
        state = tl.exp(total) * state + tl.dot(tl.trans(weighted), factors)


@triton.jit
def chunk_grads(
    x_ptr,
    dt_ptr,
    A_ptr,
    B_ptr,
    C_ptr,
    dy_ptr,
    before_ptr,
    after_ptr,
    dx_ptr,
    ddt_ptr,
    part_dA_ptr,
    dB_ptr,
    dC_ptr,
    seq_len,
    num_heads,
    num_groups,
    head_dim,
    state_dim,
    num_chunks,
    VALUES: tl.constexpr,
    STATE: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """All gradients of one chunk for the heads of one group; of A the chunk's part, (batch, chunks, num_heads)."""
    chunk = tl.program_id(0)
    group = tl.program_id(1)
    row = tl.program_id(2).to(tl.int64)
    places = tl.arange(0, CHUNK)
    values = tl.arange(0, VALUES)
    dims = tl.arange(0, STATE)
    tokens = chunk * CHUNK + places
    inside = tokens < seq_len
    lines = row * seq_len + tokens
    dim_mask = inside[:, None] & (dims < state_dim)[None, :]
    dim_offsets = (lines * num_groups + group)[:, None] * state_dim + dims[None, :]
    b = tl.load(B_ptr + dim_offsets, mask=dim_mask, other=0.0)
    c = tl.load(C_ptr + dim_offsets, mask=dim_mask, other=0.0)
    products = tl.dot(c, tl.trans(b))
    until = places[:, None] >= places[None, :]
    db = tl.zeros((CHUNK, STATE), tl.float32)
    dc = tl.zeros((CHUNK, STATE), tl.float32)
    heads = num_heads // num_groups
    for head in range(group * heads, group * heads + heads):
        A = tl.load(A_ptr + head)
        dt = tl.load(dt_ptr + lines * num_heads + head, mask=inside, other=0.0)
        sums = tl.cumsum(dt * A, axis=0)
        total = tl.sum(dt * A, axis=0)
        value_offsets = (lines * num_heads + head)[:, None] * head_dim + values[None, :]
        value_mask = inside[:, None] & (values < head_dim)[None, :]
        x = tl.load(x_ptr + value_offsets, mask=value_mask, other=0.0)
        dy = tl.load(dy_ptr + value_offsets, mask=value_mask, other=0.0)
        held = ((row * num_chunks + chunk) * num_heads + head) * head_dim * state_dim
        held_offsets = held + values[:, None] * state_dim + dims[None, :]
        held_mask = (values < head_dim)[:, None] & (dims < state_dim)[None, :]
        before = tl.load(before_ptr + held_offsets, mask=held_mask, other=0.0)
        after = tl.load(after_ptr + held_offsets, mask=held_mask, other=0.0)
        through = tl.exp(total) * tl.sum(tl.sum(before * after, axis=1), axis=0)
        before = before.to(x.dtype)
        after = after.to(x.dtype)
        since = tl.exp(sums)
        left = tl.exp(total - sums)
        between = tl.where(until, tl.exp(tl.where(until, sums[:, None] - sums[None, :], 0.0)), 0.0)
        weights = products * between
        pairs = tl.dot(dy, tl.trans(x)) * dt[None, :]
        faded = (pairs * between).to(x.dtype)
        from_after = tl.dot(b, tl.trans(after))
        to_before = tl.dot(dy, before)
        to_after = tl.dot(x, after)
        du = tl.dot(tl.trans(weights.to(x.dtype)), dy) + left[:, None] * from_after
        dc += tl.dot(faded, b) + since[:, None] * to_before
        db += tl.dot(tl.trans(faded), c) + (dt * left)[:, None] * to_after
        # What passes from tokens before t to t or one behind it: sums over rows from t on, then over columns before t.
        passing = tl.cumsum(weights * pairs, axis=0, reverse=True)
        decay = tl.sum(tl.where(places[:, None] > places[None, :], passing, 0.0), axis=1) + through
        decay += tl.cumsum(since * tl.sum(c.to(tl.float32) * to_before, axis=1), axis=0, reverse=True)
        written = dt * left * tl.sum(x.to(tl.float32) * from_after, axis=1)
        decay += tl.cumsum(written, axis=0) - written
        dx = dt[:, None] * du
        ddt = tl.sum(x.to(tl.float32) * dx, axis=1) / dt + A * decay
        tl.store(dx_ptr + value_offsets, dx.to(dx_ptr.dtype.element_ty), mask=value_mask)
        tl.store(ddt_ptr + lines * num_heads + head, ddt, mask=inside)
        part = (row * num_chunks + chunk) * num_heads + head
        tl.store(part_dA_ptr + part, tl.sum(dt * decay, axis=0))
    tl.store(dB_ptr + dim_offsets, db.to(dB_ptr.dtype.element_ty), mask=dim_mask)
    tl.store(dC_ptr + dim_offsets, dc.to(dC_ptr.dtype.element_ty), mask=dim_mask)


@triton.jit
def sum_parts(part_dA_ptr, dA_ptr, parts, num_heads, BLOCK: tl.constexpr):
    head = tl.program_id(0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, parts, BLOCK):
        places = start + tl.arange(0, BLOCK)
        sums += tl.load(part_dA_ptr + places * num_heads + head, mask=places < parts, other=0.0)
    tl.store(dA_ptr + head, tl.sum(sums, axis=0))


def ssd_backward(x, dt, A, B, C, dy, dx, ddt, dA, dB, dC):
    batch, seq_len, num_heads, head_dim = x.shape
    num_groups, state_dim = B.shape[2:]
    num_chunks = triton.cdiv(seq_len, CHUNK)
    shape = (batch, num_chunks, num_heads, head_dim, state_dim)
    before = torch.empty(shape, dtype=torch.float32, device=x.device)
    after = torch.empty(shape, dtype=torch.float32, device=x.device)
    part_dA = torch.empty((batch, num_chunks, num_heads), dtype=torch.float32, device=x.device)
    sizes = (seq_len, num_heads, num_groups, head_dim, state_dim, num_chunks)
    tiles = {
        "VALUES": triton.next_power_of_2(head_dim),
        "STATE": triton.next_power_of_2(state_dim),
        "CHUNK": CHUNK,
        "num_stages": 1,
    }
    walk_row[(batch, num_heads)](x, dt, A, B, before, *sizes, BACKWARDS=False, **tiles)
    walk_row[(batch, num_heads)](dy, dt, A, C, after, *sizes, BACKWARDS=True, **tiles)
    chunk_grads[(num_chunks, num_groups, batch)](
        x, dt, A, B, C, dy, before, after, dx, ddt, part_dA, dB, dC, *sizes, **tiles, num_warps=8
    )
    sum_parts[(num_heads,)](part_dA, dA, batch * num_chunks, num_heads, BLOCK=128)
