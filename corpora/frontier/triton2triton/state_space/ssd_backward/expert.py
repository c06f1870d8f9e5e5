"""Gradients of the Mamba-2 scan from what each chunk adds: all chunks at once, then a short pass, then all gradients.

What the baseline wastes, and what is done instead:

- Its walks load and multiply every chunk in turn, in few programs. Here products of all chunks are computed side by
  side, and what is left in order is one multiplication and addition for each number of a state.
- It sums products of states and their gradients again in every program of the last kernel. Here the pass does so while
  it holds both.
- Decays of a token take a cumulative sum of a square of numbers. Here they are differences of row and column sums.
"""

import torch
import triton
import triton.language as tl

CHUNK = 64
PASS = 1024


@triton.jit
def _add_of_chunk(
    x_ptr,
    dt_ptr,
    A_ptr,
    B_ptr,
    C_ptr,
    dy_ptr,
    before_ptr,
    after_ptr,
    totals_ptr,
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
    """What a chunk adds to the state behind it and to the gradient of the state before it; its sum of log-decays."""
    chunk = tl.program_id(0)
    head = tl.program_id(1)
    row = tl.program_id(2).to(tl.int64)
    group = head // (num_heads // num_groups)
    places = tl.arange(0, CHUNK)
    values = tl.arange(0, VALUES)
    dims = tl.arange(0, STATE)
    tokens = chunk * CHUNK + places
    inside = tokens < seq_len
    lines = row * seq_len + tokens
    dt = tl.load(dt_ptr + lines * num_heads + head, mask=inside, other=0.0)
    decays = dt * tl.load(A_ptr + head)
    sums = tl.cumsum(decays, axis=0)
    total = tl.sum(decays, axis=0)
    value_offsets = (lines * num_heads + head)[:, None] * head_dim + values[None, :]
    value_mask = inside[:, None] & (values < head_dim)[None, :]
    dim_offsets = (lines * num_groups + group)[:, None] * state_dim + dims[None, :]
    dim_mask = inside[:, None] & (dims < state_dim)[None, :]
    x = tl.load(x_ptr + value_offsets, mask=value_mask, other=0.0)
    b = tl.load(B_ptr + dim_offsets, mask=dim_mask, other=0.0)
    added = ((dt * tl.exp(total - sums))[:, None] * x.to(tl.float32)).to(x.dtype)
    place = (row * num_chunks + chunk) * num_heads + head
    held_offsets = place * head_dim * state_dim + values[:, None] * state_dim + dims[None, :]
    held_mask = (values < head_dim)[:, None] & (dims < state_dim)[None, :]
    tl.store(before_ptr + held_offsets, tl.dot(added.T, b), mask=held_mask)
    dy = tl.load(dy_ptr + value_offsets, mask=value_mask, other=0.0)
    c = tl.load(C_ptr + dim_offsets, mask=dim_mask, other=0.0)
    faded = (tl.exp(sums)[:, None] * dy.to(tl.float32)).to(dy.dtype)
    tl.store(after_ptr + held_offsets, tl.dot(faded.T, c), mask=held_mask)
    tl.store(totals_ptr + place, total)


@triton.jit
def _pass_along(
    before_ptr,
    after_ptr,
    totals_ptr,
    through_ptr,
    num_heads,
    num_chunks,
    size,
    BLOCKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """In place of what chunks add, the state before each and the gradient behind it; sums of their products."""
    block = tl.program_id(0)
    head = tl.program_id(1)
    row = tl.program_id(2).to(tl.int64)
    numbers = block * BLOCK + tl.arange(0, BLOCK)
    mask = numbers < size
    state = tl.zeros((BLOCK,), tl.float32)
    for chunk in range(num_chunks):
        place = (row * num_chunks + chunk) * num_heads + head
        added = tl.load(before_ptr + place * size + numbers, mask=mask, other=0.0)
        tl.store(before_ptr + place * size + numbers, state, mask=mask)
        state = tl.exp(tl.load(totals_ptr + place)) * state + added
    grad = tl.zeros((BLOCK,), tl.float32)
    for step in range(num_chunks):
        place = (row * num_chunks + num_chunks - 1 - step) * num_heads + head
        added = tl.load(after_ptr + place * size + numbers, mask=mask, other=0.0)
        before = tl.load(before_ptr + place * size + numbers, mask=mask, other=0.0)
        decay = tl.exp(tl.load(totals_ptr + place))
        tl.store(after_ptr + place * size + numbers, grad, mask=mask)
        tl.store(through_ptr + place * BLOCKS + block, decay * tl.sum(grad * before, axis=0))
        grad = decay * grad + added


@triton.jit
def _chunk_grads(
    x_ptr,
    dt_ptr,
    A_ptr,
    B_ptr,
    C_ptr,
    dy_ptr,
    before_ptr,
    after_ptr,
    through_ptr,
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
    BLOCKS: tl.constexpr,
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
    products = tl.dot(c, b.T)
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
        place = (row * num_chunks + chunk) * num_heads + head
        held_offsets = place * head_dim * state_dim + values[:, None] * state_dim + dims[None, :]
        held_mask = (values < head_dim)[:, None] & (dims < state_dim)[None, :]
        before = tl.load(before_ptr + held_offsets, mask=held_mask, other=0.0).to(x.dtype)
        after = tl.load(after_ptr + held_offsets, mask=held_mask, other=0.0).to(x.dtype)
        through = tl.sum(tl.load(through_ptr + place * BLOCKS + tl.arange(0, BLOCKS)), axis=0)
        since = tl.exp(sums)
        left = tl.exp(total - sums)
        between = tl.where(until, tl.exp(tl.where(until, sums[:, None] - sums[None, :], 0.0)), 0.0)
        weights = products * between
        pairs = tl.dot(dy, x.T) * dt[None, :]
        faded = (pairs * between).to(x.dtype)
        from_after = left[:, None] * tl.dot(b, after.T)
        to_before = since[:, None] * tl.dot(dy, before)
        wide = x.to(tl.float32)
        du = tl.dot(weights.to(x.dtype).T, dy, from_after)
        dc += tl.dot(faded, b, to_before)
        db += tl.dot(faded.T, c) + (dt * left)[:, None] * tl.dot(x, after)
        # Of pairs that pass over a token, those that end from it on, less those that also begin from it on.
        passing = tl.where(places[:, None] > places[None, :], weights * pairs, 0.0)
        written = dt * tl.sum(wide * from_after, axis=1)
        ended = tl.sum(passing, axis=1) - tl.sum(passing, axis=0) + tl.sum(c.to(tl.float32) * to_before, axis=1)
        decay = tl.cumsum(ended, axis=0, reverse=True) + tl.cumsum(written, axis=0) - written + through
        tl.store(dx_ptr + value_offsets, (dt[:, None] * du).to(dx_ptr.dtype.element_ty), mask=value_mask)
        tl.store(ddt_ptr + lines * num_heads + head, tl.sum(wide * du, axis=1) + A * decay, mask=inside)
        tl.store(part_dA_ptr + place, tl.sum(dt * decay, axis=0))
    tl.store(dB_ptr + dim_offsets, db.to(dB_ptr.dtype.element_ty), mask=dim_mask)
    tl.store(dC_ptr + dim_offsets, dc.to(dC_ptr.dtype.element_ty), mask=dim_mask)


@triton.jit
def _sum_parts(part_dA_ptr, dA_ptr, parts, num_heads, BLOCK: tl.constexpr):
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
    size = head_dim * state_dim
    held = (batch, num_chunks, num_heads)
    blocks = triton.next_power_of_2(triton.cdiv(size, PASS))
    before = torch.empty((*held, size), dtype=torch.float32, device=x.device)
    after = torch.empty((*held, size), dtype=torch.float32, device=x.device)
    totals = torch.empty(held, dtype=torch.float32, device=x.device)
    through = torch.empty((*held, blocks), dtype=torch.float32, device=x.device)
    part_dA = torch.empty(held, dtype=torch.float32, device=x.device)
    sizes = (seq_len, num_heads, num_groups, head_dim, state_dim, num_chunks)
    tiles = {
        "VALUES": triton.next_power_of_2(head_dim),
        "STATE": triton.next_power_of_2(state_dim),
        "CHUNK": CHUNK,
        "num_stages": 1,
    }
    _add_of_chunk[(num_chunks, num_heads, batch)](
        x, dt, A, B, C, dy, before, after, totals, *sizes, **tiles, num_warps=4
    )
    _pass_along[(blocks, num_heads, batch)](
        before, after, totals, through, num_heads, num_chunks, size, BLOCKS=blocks, BLOCK=PASS, num_warps=4
    )
    _chunk_grads[(num_chunks, num_groups, batch)](
        x, dt, A, B, C, dy, before, after, through, dx, ddt, part_dA, dB, dC, *sizes, **tiles, BLOCKS=blocks,
        num_warps=8,
    )  # fmt: skip
    _sum_parts[(num_heads,)](part_dA, dA, batch * num_chunks, num_heads, BLOCK=128)
