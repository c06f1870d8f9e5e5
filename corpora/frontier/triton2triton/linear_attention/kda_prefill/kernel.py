"""Kimi delta attention in chunks of 64 tokens: the triangular systems of all chunks, then a walk along each sequence.

Decays between two tokens are exponentials of differences, one by one: no factor of a product can overflow.
"""

import torch
import triton
import triton.language as tl

CHUNK = 64
FEW_WARPS = 2
"""Where tiles of 16 or 32 are multiplied: on Hopper Triton 3.6 and 3.7 are wrong with 4 (triton-lang/triton#11366)"""


@triton.jit
def normalized(x_ptr, tokens, token_mask, stride, head, head_dim, eps, DIMS: tl.constexpr):
    """Vectors of one head, of length 1, in float32."""
    dims = tl.arange(0, DIMS)
    mask = token_mask[:, None] & (dims < head_dim)[None, :]
    x = tl.load(x_ptr + tokens[:, None] * stride + head * head_dim + dims[None, :], mask=mask, other=0.0)
    wide = x.to(tl.float32)
    return wide / tl.sqrt(tl.sum(wide * wide, axis=1) + eps)[:, None]


@triton.jit
def solve_chunks(
    query_ptr,
    key_ptr,
    g_ptr,
    b_ptr,
    A_log_ptr,
    dt_bias_ptr,
    cu_seqlens_ptr,
    sums_ptr,
    inverse_ptr,
    scores_ptr,
    lower_bound,
    eps,
    key_stride,
    num_seqs,
    num_heads,
    head_dim,
    DIMS: tl.constexpr,
    SEQS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Sums of log-decays, shaped as key, and inverses and scores, (num_tokens, num_heads, CHUNK)."""
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
        dims = tl.arange(0, DIMS)
        tokens = (begin + places).to(tl.int64)
        inside = begin + places < end
        rows = tokens * num_heads + head
        mask = inside[:, None] & (dims < head_dim)[None, :]
        gate = tl.load(g_ptr + rows[:, None] * head_dim + dims[None, :], mask=mask, other=0.0).to(tl.float32)
        gate += tl.load(dt_bias_ptr + head * head_dim + dims, mask=dims < head_dim, other=0.0)[None, :]
        decay = lower_bound * tl.sigmoid(tl.exp(tl.load(A_log_ptr + head)) * gate)
        sums = tl.cumsum(tl.where(mask, decay, 0.0), axis=0)
        tl.store(sums_ptr + rows[:, None] * head_dim + dims[None, :], sums, mask=mask)
        query = normalized(query_ptr, tokens, inside, key_stride, head, head_dim, eps, DIMS)
        key = normalized(key_ptr, tokens, inside, key_stride, head, head_dim, eps, DIMS)
        beta = tl.sigmoid(tl.load(b_ptr + rows, mask=inside, other=0.0).to(tl.float32))
        system = tl.zeros((CHUNK, CHUNK), tl.float32)
        scores = tl.zeros((CHUNK, CHUNK), tl.float32)
        for j in range(tl.minimum(CHUNK, end - begin)):
            this = (places == j)[:, None]
            key_j = tl.sum(tl.where(this, key, 0.0), axis=0)
            sums_j = tl.sum(tl.where(this, sums, 0.0), axis=0)
            later = (places >= j)[:, None]
            faded = tl.where(later, tl.exp(tl.where(later, sums - sums_j[None, :], 0.0)), 0.0) * key_j[None, :]
            column = (places == j)[None, :]
            system = tl.where(column, tl.sum(key * faded, axis=1)[:, None], system)
            scores = tl.where(column, tl.sum(query * faded, axis=1)[:, None], scores)
        system = tl.where(places[:, None] > places[None, :], beta[:, None] * system, 0.0)
        # Row i of the inverse is that of the identity less row i of the system times the rows above.
        inverse = tl.where(places[:, None] == places[None, :], 1.0, 0.0)
        for i in range(1, tl.minimum(CHUNK, end - begin)):
            factors = tl.sum(tl.where((places == i)[:, None], system, 0.0), axis=0)
            row = tl.sum(factors[:, None] * inverse, axis=0)
            inverse = tl.where((places == i)[:, None], inverse - row[None, :], inverse)
        pairs = rows[:, None] * CHUNK + places[None, :]
        tl.store(inverse_ptr + pairs, inverse.to(inverse_ptr.dtype.element_ty), mask=inside[:, None])
        tl.store(scores_ptr + pairs, scores.to(scores_ptr.dtype.element_ty), mask=inside[:, None])


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
    scores_ptr,
    out_ptr,
    final_state_ptr,
    sm_scale,
    eps,
    key_stride,
    value_stride,
    num_heads,
    head_dim,
    value_dim,
    STARTED: tl.constexpr,
    DIMS: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    seq = tl.program_id(1)
    head = tl.program_id(2)
    begin = tl.load(cu_seqlens_ptr + seq)
    end = tl.load(cu_seqlens_ptr + seq + 1)
    places = tl.arange(0, CHUNK)
    values = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    dims = tl.arange(0, DIMS)
    in_values = values < value_dim
    in_dims = dims < head_dim
    state_offsets = (seq.to(tl.int64) * num_heads + head) * value_dim * head_dim
    state_offsets += values[:, None] * head_dim + dims[None, :]
    state_mask = in_values[:, None] & in_dims[None, :]
    state = tl.zeros((ROWS, DIMS), tl.float32)
    if STARTED:
        state = tl.load(initial_state_ptr + state_offsets, mask=state_mask, other=0.0)
    for start in range(begin, end, CHUNK):
        tokens = (start + places).to(tl.int64)
        inside = start + places < end
        rows = tokens * num_heads + head
        query = normalized(query_ptr, tokens, inside, key_stride, head, head_dim, eps, DIMS)
        key = normalized(key_ptr, tokens, inside, key_stride, head, head_dim, eps, DIMS)
        value_ptrs = value_ptr + tokens[:, None] * value_stride + head * value_dim + values[None, :]
        mask = inside[:, None] & in_values[None, :]
        value = tl.load(value_ptrs, mask=mask, other=0.0)
        beta = tl.sigmoid(tl.load(b_ptr + rows, mask=inside, other=0.0).to(tl.float32))
        sum_mask = inside[:, None] & in_dims[None, :]
        sums = tl.load(sums_ptr + rows[:, None] * head_dim + dims[None, :], mask=sum_mask, other=0.0)
        last = (tl.minimum(start + CHUNK, end) - 1).to(tl.int64) * num_heads + head
        total = tl.load(sums_ptr + last * head_dim + dims, mask=in_dims, other=0.0)
        pairs = rows[:, None] * CHUNK + places[None, :]
        inverse = tl.load(inverse_ptr + pairs, mask=inside[:, None], other=0.0)
        scores = tl.load(scores_ptr + pairs, mask=inside[:, None], other=0.0)
        since = tl.exp(sums)
        narrow = state.to(value.dtype)
        known = tl.dot((since * key).to(value.dtype), narrow.T)
        delta = tl.dot(inverse, (beta[:, None] * (value.to(tl.float32) - known)).to(value.dtype)).to(value.dtype)
        out = tl.dot((since * query).to(value.dtype), narrow.T) + tl.dot(scores, delta)
        out_ptrs = out_ptr + rows[:, None] * value_dim + values[None, :]
        tl.store(out_ptrs, (sm_scale * out).to(out_ptr.dtype.element_ty), mask=mask)
        left = tl.where(inside[:, None], tl.exp(tl.minimum(total[None, :] - sums, 0.0)) * key, 0.0)
        state = tl.exp(total)[None, :] * state + tl.dot(delta.T, left.to(value.dtype))
    tl.store(final_state_ptr + state_offsets, state, mask=state_mask)


def kda_prefill(
    query, key, value, g, b, A_log, dt_bias, cu_seqlens, initial_state, lower_bound, sm_scale, eps, out, final_state
):
    num_tokens, num_heads, head_dim = key.shape
    num_seqs, _, value_dim, _ = final_state.shape
    dims = triton.next_power_of_2(head_dim)
    rows = min(64, triton.next_power_of_2(value_dim))
    sums = torch.empty((num_tokens, num_heads, head_dim), dtype=torch.float32, device=value.device)
    inverse = torch.empty((num_tokens, num_heads, CHUNK), dtype=value.dtype, device=value.device)
    scores = torch.empty((num_tokens, num_heads, CHUNK), dtype=value.dtype, device=value.device)
    most_chunks = num_tokens // CHUNK + num_seqs
    solve_chunks[(most_chunks, num_heads)](
        query,
        key,
        g,
        b,
        A_log,
        dt_bias,
        cu_seqlens,
        sums,
        inverse,
        scores,
        lower_bound,
        eps,
        key.stride(0),
        num_seqs,
        num_heads,
        head_dim,
        DIMS=dims,
        SEQS=triton.next_power_of_2(num_seqs),
        CHUNK=CHUNK,
        num_warps=8,
    )
    walk_sequences[(triton.cdiv(value_dim, rows), num_seqs, num_heads)](
        query,
        key,
        value,
        b,
        cu_seqlens,
        initial_state,
        sums,
        inverse,
        scores,
        out,
        final_state,
        sm_scale,
        eps,
        key.stride(0),
        value.stride(0),
        num_heads,
        head_dim,
        value_dim,
        STARTED=initial_state is not None,
        DIMS=dims,
        ROWS=rows,
        CHUNK=CHUNK,
        num_warps=4 if min(dims, rows) >= 64 else FEW_WARPS,
        num_stages=1,
    )
