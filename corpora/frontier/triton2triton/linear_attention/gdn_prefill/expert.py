"""Gated delta rule in three steps: systems of all chunks, states of all chunks in their order, then all outputs.

Only the states depend on one another. A walk along a sequence therefore computes nothing else, for few rows of a state,
so that more of them run side by side. Triangular systems are inverted by matrix products of blocks.
"""

import torch
import triton
import triton.language as tl

CHUNK = 64
FEW_WARPS = 2
"""Where tiles of 16 or 32 are multiplied: on Hopper Triton 3.6 and 3.7 are wrong with 4 (triton-lang/triton#11366)"""
PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")
"""of float32: both use matrix units"""


@triton.jit
def _normalized(x_ptr, tokens, token_mask, stride, head, head_dim, eps, DIMS: tl.constexpr):
    """Vectors of one head, of length 1."""
    dims = tl.arange(0, DIMS)
    mask = token_mask[:, None] & (dims < head_dim)[None, :]
    x = tl.load(x_ptr + tokens[:, None] * stride + head * head_dim + dims[None, :], mask=mask, other=0.0)
    wide = x.to(tl.float32)
    return (wide / tl.sqrt(tl.sum(wide * wide, axis=1) + eps)[:, None]).to(x.dtype)


@triton.jit
def _solve_chunks(
    key_ptr,
    a_ptr,
    b_ptr,
    A_log_ptr,
    dt_bias_ptr,
    cu_seqlens_ptr,
    sums_ptr,
    inverse_ptr,
    eps,
    key_stride,
    num_seqs,
    num_key_heads,
    num_value_heads,
    head_dim,
    DIMS: tl.constexpr,
    SEQS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Sums of log-decays, (num_tokens, num_value_heads), and inverses, (num_tokens, num_value_heads, CHUNK)."""
    chunk = tl.program_id(0)
    head = tl.program_id(1)
    # Places of chunks: sequence s has those from cu_seqlens[s] // CHUNK + s on, at least as many as it has chunks.
    seqs = tl.arange(0, SEQS)
    firsts = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0) // CHUNK + seqs
    seq = tl.sum(((seqs < num_seqs) & (firsts <= chunk)).to(tl.int32), axis=0) - 1
    start = tl.load(cu_seqlens_ptr + seq)
    begin = start + (chunk - start // CHUNK - seq) * CHUNK
    end = tl.load(cu_seqlens_ptr + seq + 1)
    if begin < end:
        places = tl.arange(0, CHUNK)
        tokens = (begin + places).to(tl.int64)
        inside = begin + places < end
        rows = tokens * num_value_heads + head
        key_head = head // (num_value_heads // num_key_heads)
        key = _normalized(key_ptr, tokens, inside, key_stride, key_head, head_dim, eps, DIMS)
        gate = tl.load(a_ptr + rows, mask=inside, other=0.0).to(tl.float32) + tl.load(dt_bias_ptr + head)
        softplus = tl.maximum(gate, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(gate)))
        decay = -tl.exp(tl.load(A_log_ptr + head)) * softplus
        sums = tl.cumsum(tl.where(inside, decay, 0.0), axis=0)
        tl.store(sums_ptr + rows, sums, mask=inside)
        beta = tl.sigmoid(tl.load(b_ptr + rows, mask=inside, other=0.0).to(tl.float32))
        earlier = places[:, None] > places[None, :]
        between = tl.exp(tl.where(earlier, sums[:, None] - sums[None, :], 0.0))
        system = tl.where(earlier, beta[:, None] * tl.dot(key, key.T) * between, 0.0)
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
        out_ptrs = inverse_ptr + rows[:, None] * CHUNK + places[None, :]
        tl.store(out_ptrs, inverse.to(inverse_ptr.dtype.element_ty), mask=inside[:, None])


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
    num_key_heads,
    num_value_heads,
    head_dim,
    value_dim,
    STARTED: tl.constexpr,
    DIMS: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """States before every chunk, (chunks, num_value_heads, value_dim, head_dim), and deltas, shaped as value."""
    seq = tl.program_id(2)
    head = tl.program_id(1)
    key_head = head // (num_value_heads // num_key_heads)
    begin = tl.load(cu_seqlens_ptr + seq)
    chunk = begin // CHUNK + seq
    end = tl.load(cu_seqlens_ptr + seq + 1)
    places = tl.arange(0, CHUNK)
    values = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIMS)
    in_values = values < value_dim
    state_offsets = values[:, None] * head_dim + dims[None, :]
    state_mask = in_values[:, None] & (dims < head_dim)[None, :]
    size = value_dim * head_dim
    own = (seq.to(tl.int64) * num_value_heads + head) * size
    state = tl.zeros((ROWS, DIMS), tl.float32)
    if STARTED:
        state = tl.load(initial_state_ptr + own + state_offsets, mask=state_mask, other=0.0)
    for start in range(begin, end, CHUNK):
        tokens = (start + places).to(tl.int64)
        inside = start + places < end
        rows = tokens * num_value_heads + head
        key = _normalized(key_ptr, tokens, inside, key_stride, key_head, head_dim, eps, DIMS)
        value_ptrs = value_ptr + tokens[:, None] * value_stride + head * value_dim + values[None, :]
        mask = inside[:, None] & in_values[None, :]
        value = tl.load(value_ptrs, mask=mask, other=0.0)
        beta = tl.sigmoid(tl.load(b_ptr + rows, mask=inside, other=0.0).to(tl.float32))
        sums = tl.load(sums_ptr + rows, mask=inside, other=0.0)
        total = tl.load(sums_ptr + (tl.minimum(start + CHUNK, end) - 1).to(tl.int64) * num_value_heads + head)
        inverse_ptrs = inverse_ptr + rows[:, None] * CHUNK + places[None, :]
        inverse = tl.load(inverse_ptrs, mask=inside[:, None], other=0.0)
        narrow = state.to(value.dtype)
        place = (chunk.to(tl.int64) + (start - begin) // CHUNK) * num_value_heads + head
        tl.store(states_ptr + place * size + state_offsets, narrow, mask=state_mask)
        rest = beta[:, None] * (value.to(tl.float32) - tl.exp(sums)[:, None] * tl.dot(key, narrow.T))
        delta = tl.dot(inverse, rest.to(value.dtype))
        tl.store(delta_ptr + rows[:, None] * value_dim + values[None, :], delta.to(value.dtype), mask=mask)
        left = delta * tl.exp(total - sums)[:, None]
        state = tl.exp(total) * state + tl.dot(left.to(value.dtype).T, key)
    tl.store(final_state_ptr + own + state_offsets, state, mask=state_mask)


@triton.jit
def _read_states(
    query_ptr,
    key_ptr,
    cu_seqlens_ptr,
    sums_ptr,
    delta_ptr,
    states_ptr,
    out_ptr,
    sm_scale,
    eps,
    key_stride,
    num_seqs,
    num_key_heads,
    num_value_heads,
    head_dim,
    value_dim,
    DIMS: tl.constexpr,
    ROWS: tl.constexpr,
    SEQS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    chunk = tl.program_id(1)
    head = tl.program_id(2)
    # Places of chunks: sequence s has those from cu_seqlens[s] // CHUNK + s on, at least as many as it has chunks.
    seqs = tl.arange(0, SEQS)
    firsts = tl.load(cu_seqlens_ptr + seqs, mask=seqs < num_seqs, other=0) // CHUNK + seqs
    seq = tl.sum(((seqs < num_seqs) & (firsts <= chunk)).to(tl.int32), axis=0) - 1
    start = tl.load(cu_seqlens_ptr + seq)
    begin = start + (chunk - start // CHUNK - seq) * CHUNK
    end = tl.load(cu_seqlens_ptr + seq + 1)
    if begin < end:
        places = tl.arange(0, CHUNK)
        tokens = (begin + places).to(tl.int64)
        inside = begin + places < end
        rows = tokens * num_value_heads + head
        key_head = head // (num_value_heads // num_key_heads)
        values = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        dims = tl.arange(0, DIMS)
        in_values = values < value_dim
        mask = inside[:, None] & in_values[None, :]
        query = _normalized(query_ptr, tokens, inside, key_stride, key_head, head_dim, eps, DIMS)
        key = _normalized(key_ptr, tokens, inside, key_stride, key_head, head_dim, eps, DIMS)
        sums = tl.load(sums_ptr + rows, mask=inside, other=0.0)
        delta = tl.load(delta_ptr + rows[:, None] * value_dim + values[None, :], mask=mask, other=0.0)
        place = chunk.to(tl.int64) * num_value_heads + head
        state_ptrs = states_ptr + place * value_dim * head_dim + values[:, None] * head_dim + dims[None, :]
        state = tl.load(state_ptrs, mask=in_values[:, None] & (dims < head_dim)[None, :], other=0.0)
        until = places[:, None] >= places[None, :]
        between = tl.exp(tl.where(until, sums[:, None] - sums[None, :], 0.0))
        scores = tl.where(until, tl.dot(query, key.T) * between, 0.0)
        out = tl.exp(sums)[:, None] * tl.dot(query, state.T)
        out = tl.dot(scores.to(delta.dtype), delta, out)
        out_ptrs = out_ptr + rows[:, None] * value_dim + values[None, :]
        tl.store(out_ptrs, (sm_scale * out).to(out_ptr.dtype.element_ty), mask=mask)


def gdn_prefill(query, key, value, a, b, A_log, dt_bias, cu_seqlens, initial_state, sm_scale, eps, out, final_state):
    num_tokens, num_key_heads, head_dim = key.shape
    num_seqs, num_value_heads, value_dim, _ = final_state.shape
    dims = max(16, triton.next_power_of_2(head_dim))
    columns = max(16, triton.next_power_of_2(value_dim))
    rows = min(columns, 32 if dims <= 128 else 16)
    seqs = triton.next_power_of_2(num_seqs)
    most_chunks = num_tokens // CHUNK + num_seqs
    sums = torch.empty((num_tokens, num_value_heads), dtype=torch.float32, device=value.device)
    inverse = torch.empty((num_tokens, num_value_heads, CHUNK), dtype=value.dtype, device=value.device)
    delta = torch.empty((num_tokens, num_value_heads, value_dim), dtype=value.dtype, device=value.device)
    states = torch.empty((most_chunks, num_value_heads, value_dim, head_dim), dtype=value.dtype, device=value.device)
    _solve_chunks[(most_chunks, num_value_heads)](
        key,
        a,
        b,
        A_log,
        dt_bias,
        cu_seqlens,
        sums,
        inverse,
        eps,
        key.stride(0),
        num_seqs,
        num_key_heads,
        num_value_heads,
        head_dim,
        DIMS=dims,
        SEQS=seqs,
        CHUNK=CHUNK,
        num_warps=4,
    )
    _walk_sequences[(triton.cdiv(value_dim, rows), num_value_heads, num_seqs)](
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
        num_key_heads,
        num_value_heads,
        head_dim,
        value_dim,
        STARTED=initial_state is not None,
        DIMS=dims,
        ROWS=rows,
        CHUNK=CHUNK,
        num_warps=FEW_WARPS,
        num_stages=2 if dims <= 128 else 1,
    )
    columns = min(columns, 64 if dims <= 128 else 16)
    _read_states[(triton.cdiv(value_dim, columns), most_chunks, num_value_heads)](
        query,
        key,
        cu_seqlens,
        sums,
        delta,
        states,
        out,
        sm_scale,
        eps,
        key.stride(0),
        num_seqs,
        num_key_heads,
        num_value_heads,
        head_dim,
        value_dim,
        DIMS=dims,
        ROWS=columns,
        SEQS=seqs,
        CHUNK=CHUNK,
        num_warps=4 if min(dims, columns) >= 64 else FEW_WARPS,
    )
