"""Kimi delta attention in steps: pairs of tokens, triangular systems, states of all chunks in order, then outputs.

What the baseline wastes, and what is done instead:

- It takes an exponential for each pair of tokens and channel, 64 columns one after the other. Here that is done inside
  blocks of 16 tokens alone. Between two blocks a decay is the product of what passed until the later block began and
  since, neither above 1, so that matrix products serve.
- Triangular systems are solved row by row. Here products of blocks invert them.
- A walk along a sequence computes outputs too. Here it carries states alone, few rows of one, so that more run side by
  side; outputs of all chunks follow at once.
"""

import torch
import triton
import triton.language as tl

CHUNK = 64
BLOCK = 16
LEAST_SCAN = 16
PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")


@triton.jit
def _find_chunk(cu_seqlens_ptr, chunk, num_seqs, SEQS: tl.constexpr, CHUNK: tl.constexpr):
    """First token of a chunk, and the end of its sequence; both 0 past the last chunk."""
    seqs = tl.arange(0, SEQS)
    begins = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0)
    ends = tl.load(cu_seqlens_ptr + seqs + 1, mask=seqs < num_seqs, other=0)
    chunks = (ends - begins + CHUNK - 1) // CHUNK
    before = tl.cumsum(chunks, axis=0) - chunks
    mine = (before <= chunk) & (chunk < before + chunks)
    begin = tl.sum(tl.where(mine, begins + (chunk - before) * CHUNK, 0), axis=0)
    return begin, tl.sum(tl.where(mine, ends, 0), axis=0)


@triton.jit
def _normalized(x_ptr, tokens, token_mask, stride, head, head_dim, eps, DIMS: tl.constexpr):
    """Vectors of one head, of length 1, in float32."""
    dims = tl.arange(0, DIMS)
    mask = token_mask[:, None] & (dims < head_dim)[None, :]
    x = tl.load(x_ptr + tokens[:, None] * stride + head * head_dim + dims[None, :], mask=mask, other=0.0)
    wide = x.to(tl.float32)
    return wide * tl.rsqrt(tl.sum(wide * wide, axis=1) + eps)[:, None]


@triton.jit
def _sum_decays(
    g_ptr,
    A_log_ptr,
    dt_bias_ptr,
    cu_seqlens_ptr,
    sums_ptr,
    lower_bound,
    num_seqs,
    num_heads,
    head_dim,
    DIMS: tl.constexpr,
    SEQS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Sums of log-decays within chunks, shaped as key."""
    head = tl.program_id(1)
    begin, end = _find_chunk(cu_seqlens_ptr, tl.program_id(0), num_seqs, SEQS, CHUNK)
    if begin < end:
        places = tl.arange(0, CHUNK)
        dims = tl.arange(0, DIMS)
        rows = (begin + places).to(tl.int64) * num_heads + head
        mask = (begin + places < end)[:, None] & (dims < head_dim)[None, :]
        offsets = rows[:, None] * head_dim + dims[None, :]
        gate = tl.load(g_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        gate += tl.load(dt_bias_ptr + head * head_dim + dims, mask=dims < head_dim, other=0.0)[None, :]
        decay = lower_bound * tl.sigmoid(tl.exp(tl.load(A_log_ptr + head)) * gate)
        tl.store(sums_ptr + offsets, tl.cumsum(tl.where(mask, decay, 0.0), axis=0), mask=mask)


@triton.jit
def _pair_block(
    query_ptr,
    key_ptr,
    b_ptr,
    cu_seqlens_ptr,
    sums_ptr,
    system_ptr,
    scores_ptr,
    eps,
    key_stride,
    num_seqs,
    num_heads,
    head_dim,
    DIMS: tl.constexpr,
    SEQS: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Rows of the system and of the scores, (num_tokens, num_heads, CHUNK), for the 16 tokens of one block."""
    head = tl.program_id(2)
    begin, end = _find_chunk(cu_seqlens_ptr, tl.program_id(0), num_seqs, SEQS, CHUNK)
    first = tl.program_id(1) * BLOCK
    if begin + first < end:
        dims = tl.arange(0, DIMS)
        in_dims = dims < head_dim
        rows = first + tl.arange(0, BLOCK)
        places = tl.arange(0, CHUNK)
        tokens = (begin + rows).to(tl.int64)
        inside = begin + rows < end
        lines = tokens * num_heads + head
        key = _normalized(key_ptr, tokens, inside, key_stride, head, head_dim, eps, DIMS)
        query = _normalized(query_ptr, tokens, inside, key_stride, head, head_dim, eps, DIMS)
        mask = inside[:, None] & in_dims[None, :]
        sums = tl.load(sums_ptr + lines[:, None] * head_dim + dims[None, :], mask=mask, other=0.0)
        beta = tl.sigmoid(tl.load(b_ptr + lines, mask=inside, other=0.0).to(tl.float32))
        system = tl.zeros((BLOCK, CHUNK), tl.float32)
        scores = tl.zeros((BLOCK, CHUNK), tl.float32)
        if first > 0:
            # What passed until the block began is that until its predecessor, the last token before it.
            origin = (begin + first - 1).to(tl.int64) * num_heads + head
            until = tl.load(sums_ptr + origin * head_dim + dims, mask=in_dims, other=0.0)
            since = tl.exp(tl.minimum(sums - until[None, :], 0.0))
            earlier = places < first
            others = (begin + places).to(tl.int64)
            other_lines = others * num_heads + head
            other_key = _normalized(key_ptr, others, earlier, key_stride, head, head_dim, eps, DIMS)
            other_mask = earlier[:, None] & in_dims[None, :]
            other_sums = tl.load(sums_ptr + other_lines[:, None] * head_dim + dims[None, :], mask=other_mask, other=0.0)
            faded = tl.exp(tl.minimum(until[None, :] - other_sums, 0.0)) * other_key
            faded = faded.to(scores_ptr.dtype.element_ty).T
            system = tl.dot((key * since).to(faded.dtype), faded)
            scores = tl.dot((query * since).to(faded.dtype), faded)
        for j in range(BLOCK):
            token = (begin + first + j).to(tl.int64)
            if token < end:
                line = token * num_heads + head
                raw = tl.load(key_ptr + token * key_stride + head * head_dim + dims, mask=in_dims, other=0.0)
                wide = raw.to(tl.float32)
                key_j = wide * tl.rsqrt(tl.sum(wide * wide, axis=0) + eps)
                sums_j = tl.load(sums_ptr + line * head_dim + dims, mask=in_dims, other=0.0)
                later = rows >= first + j
                faded_j = tl.exp(tl.minimum(sums - sums_j[None, :], 0.0)) * key_j[None, :]
                column = (places == first + j)[None, :] & later[:, None]
                system = tl.where(column, tl.sum(key * faded_j, axis=1)[:, None], system)
                scores = tl.where(column, tl.sum(query * faded_j, axis=1)[:, None], scores)
        system = tl.where(rows[:, None] > places[None, :], beta[:, None] * system, 0.0)
        pairs = lines[:, None] * CHUNK + places[None, :]
        tl.store(system_ptr + pairs, system, mask=inside[:, None])
        tl.store(scores_ptr + pairs, scores.to(scores_ptr.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _invert(
    cu_seqlens_ptr,
    system_ptr,
    inverse_ptr,
    num_seqs,
    num_heads,
    SEQS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    head = tl.program_id(1)
    begin, end = _find_chunk(cu_seqlens_ptr, tl.program_id(0), num_seqs, SEQS, CHUNK)
    if begin < end:
        places = tl.arange(0, CHUNK)
        inside = begin + places < end
        rows = (begin + places).to(tl.int64) * num_heads + head
        pairs = rows[:, None] * CHUNK + places[None, :]
        system = tl.load(system_ptr + pairs, mask=inside[:, None], other=0.0)
        # Blocks of 2 << level on the diagonal: what lies below both halves is minus inverse @ that part @ inverse.
        inverse = tl.where(places[:, None] == places[None, :], 1.0, 0.0)
        for level in tl.static_range(6):
            paired = (places[:, None] // (2 << level)) == (places[None, :] // (2 << level))
            lower = (places[:, None] // (1 << level) % 2 == 1) & (places[None, :] // (1 << level) % 2 == 0)
            below = tl.where(paired & lower, system, 0.0)
            if level == 0:
                inverse -= below
            else:
                product = tl.dot(inverse, below, input_precision=PRECISION)
                inverse -= tl.dot(product, inverse, input_precision=PRECISION)
        tl.store(inverse_ptr + pairs, inverse.to(inverse_ptr.dtype.element_ty), mask=inside[:, None])


@triton.jit
def _walk_sequences(
    key_ptr,
    value_ptr,
    b_ptr,
    cu_seqlens_ptr,
    initial_state_ptr,
    sums_ptr,
    inverse_ptr,
    delta_ptr,
    states_ptr,
    final_state_ptr,
    eps,
    key_stride,
    value_stride,
    num_heads,
    head_dim,
    value_dim,
    STARTED: tl.constexpr,
    DIMS: tl.constexpr,
    ROWS: tl.constexpr,
    SEQS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """States before every chunk, (chunks, num_heads, value_dim, head_dim), and deltas, shaped as value."""
    seq = tl.program_id(2)
    head = tl.program_id(1)
    seqs = tl.arange(0, SEQS)
    lengths = tl.load(cu_seqlens_ptr + seqs + 1, mask=seqs < seq, other=0)
    lengths -= tl.load(cu_seqlens_ptr + seqs, mask=seqs < seq, other=0)
    chunk = tl.sum((lengths + CHUNK - 1) // CHUNK, axis=0)
    begin = tl.load(cu_seqlens_ptr + seq)
    end = tl.load(cu_seqlens_ptr + seq + 1)
    places = tl.arange(0, CHUNK)
    values = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIMS)
    in_values = values < value_dim
    in_dims = dims < head_dim
    state_offsets = values[:, None] * head_dim + dims[None, :]
    state_mask = in_values[:, None] & in_dims[None, :]
    size = value_dim * head_dim
    own = (seq.to(tl.int64) * num_heads + head) * size
    state = tl.zeros((ROWS, DIMS), tl.float32)
    if STARTED:
        state = tl.load(initial_state_ptr + own + state_offsets, mask=state_mask, other=0.0)
    for start in range(begin, end, CHUNK):
        tokens = (start + places).to(tl.int64)
        inside = start + places < end
        rows = tokens * num_heads + head
        key = _normalized(key_ptr, tokens, inside, key_stride, head, head_dim, eps, DIMS)
        value_ptrs = value_ptr + tokens[:, None] * value_stride + head * value_dim + values[None, :]
        mask = inside[:, None] & in_values[None, :]
        value = tl.load(value_ptrs, mask=mask, other=0.0)
        beta = tl.sigmoid(tl.load(b_ptr + rows, mask=inside, other=0.0).to(tl.float32))
        sum_mask = inside[:, None] & in_dims[None, :]
        sums = tl.load(sums_ptr + rows[:, None] * head_dim + dims[None, :], mask=sum_mask, other=0.0)
        last = (tl.minimum(start + CHUNK, end) - 1).to(tl.int64) * num_heads + head
        total = tl.load(sums_ptr + last * head_dim + dims, mask=in_dims, other=0.0)
        inverse_ptrs = inverse_ptr + rows[:, None] * CHUNK + places[None, :]
        inverse = tl.load(inverse_ptrs, mask=inside[:, None], other=0.0)
        narrow = state.to(value.dtype)
        place = (chunk.to(tl.int64) + (start - begin) // CHUNK) * num_heads + head
        tl.store(states_ptr + place * size + state_offsets, narrow, mask=state_mask)
        known = tl.dot((tl.exp(sums) * key).to(value.dtype), narrow.T)
        delta = tl.dot(inverse, (beta[:, None] * (value.to(tl.float32) - known)).to(value.dtype)).to(value.dtype)
        tl.store(delta_ptr + rows[:, None] * value_dim + values[None, :], delta, mask=mask)
        left = tl.exp(tl.minimum(total[None, :] - sums, 0.0)) * key
        state = tl.exp(total)[None, :] * state + tl.dot(delta.T, left.to(value.dtype))
    tl.store(final_state_ptr + own + state_offsets, state, mask=state_mask)


@triton.jit
def _read_states(
    query_ptr,
    cu_seqlens_ptr,
    sums_ptr,
    scores_ptr,
    delta_ptr,
    states_ptr,
    out_ptr,
    sm_scale,
    eps,
    key_stride,
    num_seqs,
    num_heads,
    head_dim,
    value_dim,
    DIMS: tl.constexpr,
    ROWS: tl.constexpr,
    SEQS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    chunk = tl.program_id(1)
    head = tl.program_id(2)
    begin, end = _find_chunk(cu_seqlens_ptr, chunk, num_seqs, SEQS, CHUNK)
    if begin < end:
        places = tl.arange(0, CHUNK)
        tokens = (begin + places).to(tl.int64)
        inside = begin + places < end
        rows = tokens * num_heads + head
        values = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        dims = tl.arange(0, DIMS)
        in_values = values < value_dim
        in_dims = dims < head_dim
        mask = inside[:, None] & in_values[None, :]
        query = _normalized(query_ptr, tokens, inside, key_stride, head, head_dim, eps, DIMS)
        sum_mask = inside[:, None] & in_dims[None, :]
        sums = tl.load(sums_ptr + rows[:, None] * head_dim + dims[None, :], mask=sum_mask, other=0.0)
        scores = tl.load(scores_ptr + rows[:, None] * CHUNK + places[None, :], mask=inside[:, None], other=0.0)
        delta = tl.load(delta_ptr + rows[:, None] * value_dim + values[None, :], mask=mask, other=0.0)
        place = chunk.to(tl.int64) * num_heads + head
        state_ptrs = states_ptr + place * value_dim * head_dim + values[:, None] * head_dim + dims[None, :]
        state = tl.load(state_ptrs, mask=in_values[:, None] & in_dims[None, :], other=0.0)
        out = tl.dot((tl.exp(sums) * query).to(state.dtype), state.T)
        out = tl.dot(scores, delta, out)
        out_ptrs = out_ptr + rows[:, None] * value_dim + values[None, :]
        tl.store(out_ptrs, (sm_scale * out).to(out_ptr.dtype.element_ty), mask=mask)


def kda_prefill(
    query, key, value, g, b, A_log, dt_bias, cu_seqlens, initial_state, lower_bound, sm_scale, eps, out, final_state
):
    num_tokens, num_heads, head_dim = key.shape
    num_seqs, _, value_dim, _ = final_state.shape
    dims = triton.next_power_of_2(head_dim)
    columns = triton.next_power_of_2(value_dim)
    rows = min(columns, 32)
    seqs = max(LEAST_SCAN, triton.next_power_of_2(num_seqs))
    most_chunks = num_tokens // CHUNK + num_seqs
    dtype, device = value.dtype, value.device
    sums = torch.empty((num_tokens, num_heads, head_dim), dtype=torch.float32, device=device)
    system = torch.empty((num_tokens, num_heads, CHUNK), dtype=torch.float32, device=device)
    scores = torch.empty((num_tokens, num_heads, CHUNK), dtype=dtype, device=device)
    inverse = torch.empty((num_tokens, num_heads, CHUNK), dtype=dtype, device=device)
    delta = torch.empty((num_tokens, num_heads, value_dim), dtype=dtype, device=device)
    states = torch.empty((most_chunks, num_heads, value_dim, head_dim), dtype=dtype, device=device)
    _sum_decays[(most_chunks, num_heads)](
        g,
        A_log,
        dt_bias,
        cu_seqlens,
        sums,
        lower_bound,
        num_seqs,
        num_heads,
        head_dim,
        DIMS=dims,
        SEQS=seqs,
        CHUNK=CHUNK,
        num_warps=4,
    )
    _pair_block[(most_chunks, CHUNK // BLOCK, num_heads)](
        query,
        key,
        b,
        cu_seqlens,
        sums,
        system,
        scores,
        eps,
        key.stride(0),
        num_seqs,
        num_heads,
        head_dim,
        DIMS=dims,
        SEQS=seqs,
        CHUNK=CHUNK,
        BLOCK=BLOCK,
        num_warps=4,
    )
    _invert[(most_chunks, num_heads)](
        cu_seqlens, system, inverse, num_seqs, num_heads, SEQS=seqs, CHUNK=CHUNK, num_warps=4
    )
    _walk_sequences[(triton.cdiv(value_dim, rows), num_heads, num_seqs)](
        key,
        value,
        b,
        cu_seqlens,
        initial_state,
        sums,
        inverse,
        delta,
        states,
        final_state,
        eps,
        key.stride(0),
        value.stride(0),
        num_heads,
        head_dim,
        value_dim,
        STARTED=initial_state is not None,
        DIMS=dims,
        ROWS=rows,
        SEQS=seqs,
        CHUNK=CHUNK,
        num_warps=4,
        num_stages=1 if torch.version.hip else 2,
    )
    columns = min(columns, 64)
    _read_states[(triton.cdiv(value_dim, columns), most_chunks, num_heads)](
        query,
        cu_seqlens,
        sums,
        scores,
        delta,
        states,
        out,
        sm_scale,
        eps,
        key.stride(0),
        num_seqs,
        num_heads,
        head_dim,
        value_dim,
        DIMS=dims,
        ROWS=columns,
        SEQS=seqs,
        CHUNK=CHUNK,
        num_warps=4,
    )
