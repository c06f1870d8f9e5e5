"""Gated delta rule in chunks of 64 tokens: the triangular systems of all chunks first, then a walk along each sequence.

A walk keeps up to 64 rows of a state, fewer where they are long, and goes from chunk to chunk.
"""

import torch
import triton
import triton.language as tl

CHUNK = 64
FEW_WARPS = 2
"""Where tiles of 16 or 32 are multiplied: on Hopper Triton 3.6 and 3.7 are wrong with 4 (triton-lang/triton#11366)"""


@triton.jit
def normalized(x_ptr, tokens, token_mask, stride, head, head_dim, eps, DIMS: tl.constexpr):
    """Vectors of one head, of length 1."""
    dims = tl.arange(0, DIMS)
    mask = token_mask[:, None] & (dims < head_dim)[None, :]
    x = tl.load(x_ptr + tokens[:, None] * stride + head * head_dim + dims[None, :], mask=mask, other=0.0)
    wide = x.to(tl.float32)
    return (wide / tl.sqrt(tl.sum(wide * wide, axis=1) + eps)[:, None]).to(x.dtype)


@triton.jit
def solve_chunks(
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
        key = normalized(key_ptr, tokens, inside, key_stride, key_head, head_dim, eps, DIMS)
        gate = tl.load(a_ptr + rows, mask=inside, other=0.0).to(tl.float32) + tl.load(dt_bias_ptr + head)
        softplus = tl.maximum(gate, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(gate)))
        decay = -tl.exp(tl.load(A_log_ptr + head)) * softplus
        sums = tl.cumsum(tl.where(inside, decay, 0.0), axis=0)
        tl.store(sums_ptr + rows, sums, mask=inside)
        beta = tl.sigmoid(tl.load(b_ptr + rows, mask=inside, other=0.0).to(tl.float32))
        earlier = places[:, None] > places[None, :]
        between = tl.exp(tl.where(earlier, sums[:, None] - sums[None, :], 0.0))
        system = tl.where(earlier, beta[:, None] * tl.dot(key, key.T) * between, 0.0)
        # Row i of the inverse is that of the identity less row i of the system times the rows above.
        inverse = tl.where(places[:, None] == places[None, :], 1.0, 0.0)
        for i in range(1, tl.minimum(CHUNK, end - begin)):
            factors = tl.sum(tl.where((places == i)[:, None], system, 0.0), axis=0)
            row = tl.sum(factors[:, None] * inverse, axis=0)
            inverse = tl.where((places == i)[:, None], inverse - row[None, :], inverse)
        out_ptrs = inverse_ptr + rows[:, None] * CHUNK + places[None, :]
        tl.store(out_ptrs, inverse.to(inverse_ptr.dtype.element_ty), mask=inside[:, None])


@triton.jit
def walk_sequences(
    query_ptr,
    key_ptr,
    value_ptr,
    b_ptr,
    cu_seqlens_ptr,
    initial_state_ptr,
    sums_ptr,
    inverse_ptr,
    out_ptr,
    final_state_ptr,
    sm_scale,
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
    seq = tl.program_id(1)
    head = tl.program_id(2)
    key_head = head // (num_value_heads // num_key_heads)
    begin = tl.load(cu_seqlens_ptr + seq)
    end = tl.load(cu_seqlens_ptr + seq + 1)
    places = tl.arange(0, CHUNK)
    values = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIMS)
    in_values = values < value_dim
    state_offsets = (seq.to(tl.int64) * num_value_heads + head) * value_dim * head_dim
    state_offsets += values[:, None] * head_dim + dims[None, :]
    state_mask = in_values[:, None] & (dims < head_dim)[None, :]
    state = tl.zeros((ROWS, DIMS), tl.float32)
    if STARTED:
        state = tl.load(initial_state_ptr + state_offsets, mask=state_mask, other=0.0)
    for start in range(begin, end, CHUNK):
        tokens = (start + places).to(tl.int64)
        inside = start + places < end
        rows = tokens * num_value_heads + head
        query = normalized(query_ptr, tokens, inside, key_stride, key_head, head_dim, eps, DIMS)
        key = normalized(key_ptr, tokens, inside, key_stride, key_head, head_dim, eps, DIMS)
        value_ptrs = value_ptr + tokens[:, None] * value_stride + head * value_dim + values[None, :]
        mask = inside[:, None] & in_values[None, :]
        value = tl.load(value_ptrs, mask=mask, other=0.0)
        beta = tl.sigmoid(tl.load(b_ptr + rows, mask=inside, other=0.0).to(tl.float32))
        sums = tl.load(sums_ptr + rows, mask=inside, other=0.0)
        total = tl.load(sums_ptr + (tl.minimum(start + CHUNK, end) - 1).to(tl.int64) * num_value_heads + head)
        inverse_ptrs = inverse_ptr + rows[:, None] * CHUNK + places[None, :]
        inverse = tl.load(inverse_ptrs, mask=inside[:, None], other=0.0)
        since = tl.exp(sums)[:, None]
        narrow = state.to(value.dtype)
        rest = beta[:, None] * (value.to(tl.float32) - since * tl.dot(key, narrow.T))
        delta = tl.dot(inverse, rest.to(value.dtype))
        until = places[:, None] >= places[None, :]
        between = tl.exp(tl.where(until, sums[:, None] - sums[None, :], 0.0))
        scores = tl.where(until, tl.dot(query, key.T) * between, 0.0)
        out = since * tl.dot(query, narrow.T) + tl.dot(scores.to(value.dtype), delta.to(value.dtype))
        out_ptrs = out_ptr + rows[:, None] * value_dim + values[None, :]
        tl.store(out_ptrs, (sm_scale * out).to(out_ptr.dtype.element_ty), mask=mask)
        left = delta * tl.exp(total - sums)[:, None]
        state = tl.exp(total) * state + tl.dot(left.to(value.dtype).T, key)
    tl.store(final_state_ptr + state_offsets, state, mask=state_mask)


def gdn_prefill(query, key, value, a, b, A_log, dt_bias, cu_seqlens, initial_state, sm_scale, eps, out, final_state):
    num_tokens, num_key_heads, head_dim = key.shape
    num_seqs, num_value_heads, value_dim, _ = final_state.shape
    dims = max(16, triton.next_power_of_2(head_dim))
    rows = max(16, min(64 if dims <= 128 else 16, triton.next_power_of_2(value_dim)))
    sums = torch.empty((num_tokens, num_value_heads), dtype=torch.float32, device=value.device)
    inverse = torch.empty((num_tokens, num_value_heads, CHUNK), dtype=value.dtype, device=value.device)
    most_chunks = num_tokens // CHUNK + num_seqs
    solve_chunks[(most_chunks, num_value_heads)](
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
        SEQS=triton.next_power_of_2(num_seqs),
        CHUNK=CHUNK,
    )
    walk_sequences[(triton.cdiv(value_dim, rows), num_seqs, num_value_heads)](
        query,
        key,
        value,
        b,
        cu_seqlens,
        initial_state,
        sums,
        inverse,
        out,
        final_state,
        sm_scale,
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
        num_warps=4 if min(dims, rows) >= 64 else FEW_WARPS,
        num_stages=1,
    )
