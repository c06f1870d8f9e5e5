"""Mamba-2 chunk scan with the whole head in one tile and products in the inputs' dtype.

Between a tile of tokens and the blocks of tokens before it, the decay is split at the tile's first token: one factor
goes to the columns of CB, the other to the finished rows. Only the tile's own triangle needs an exponential a pair.
float32 is multiplied as three TF32 products on NVIDIA, in steps of 32, which leave room for two programs on an SM.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def add_product(weights, x, acc, start):
    """acc + weights @ x, weights being float32; start is a step's first column."""
    # Never true: a use of the sum outside of products makes Triton wait for them in every step.
    if start < 0:
        acc = -acc
    return tl.dot(weights.to(x.dtype), x, acc, input_precision=PRECISION)


@triton.jit
def scan_tokens(
    x_ptr,
    dt_ptr,
    decay_ptr,
    C_ptr,
    CB_ptr,
    prev_ptr,
    D_ptr,
    z_ptr,
    seq_idx_ptr,
    out_ptr,
    seq_len,
    num_heads,
    num_groups,
    head_dim,
    state_dim,
    chunk_size,
    tiles_m,
    BLOCK_M: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # Heads side by side, which share CB and C; then tiles of a chunk.
    head = tl.program_id(0) % num_heads
    tile = tl.program_id(0) // num_heads
    m0 = tile % tiles_m * BLOCK_M
    num_chunks = tl.cdiv(seq_len, chunk_size)
    chunk = tile // tiles_m % num_chunks
    row = (tile // tiles_m // num_chunks).to(tl.int64)
    group = head // (num_heads // num_groups)
    length = tl.minimum(chunk_size, seq_len - chunk * chunk_size)
    if m0 < length:
        p = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
        m = m0 + tl.arange(0, BLOCK_M)
        inside = m < length
        p_mask = (p < head_dim)[None, :]
        first = row * seq_len + chunk * chunk_size
        tokens = first + m
        steps = ((row * num_heads + head) * num_chunks + chunk) * chunk_size
        decay = tl.load(decay_ptr + steps + m, mask=inside, other=0.0)
        decay_0 = tl.load(decay_ptr + steps + m0)
        ids = m
        if seq_idx_ptr is not None:
            ids = tl.load(seq_idx_ptr + tokens, mask=inside, other=-1)

        acc = tl.zeros((BLOCK_M, BLOCK_P), tl.float32)
        state_row = ((row * num_chunks + chunk) * num_heads + head) * head_dim
        for start in range(0, state_dim, BLOCK_K):
            n = start + tl.arange(0, BLOCK_K)
            n_known = n < state_dim
            C_rows = (tokens * num_groups + group)[:, None] * state_dim
            C = tl.load(C_ptr + C_rows + n[None, :], mask=inside[:, None] & n_known[None, :], other=0.0)
            places = (state_row + p)[None, :] * state_dim + n[:, None]
            prev = tl.load(prev_ptr + places, mask=n_known[:, None] & p_mask, other=0.0)
            acc = tl.dot(C, prev, acc, input_precision=PRECISION)
        acc *= tl.exp(decay_0)
        if seq_idx_ptr is not None:
            before = tl.load(seq_idx_ptr + tl.maximum(first - 1, row * seq_len))
            acc = tl.where((ids == before)[:, None], acc, 0.0)

        CB_rows = ((((row * num_chunks + chunk) * num_groups + group) * chunk_size + m) * chunk_size)[:, None]
        for start in range(0, m0, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            CB = tl.load(CB_ptr + CB_rows + k[None, :], mask=inside[:, None], other=0.0)
            scale = tl.load(dt_ptr + steps + k) * tl.exp(decay_0 - tl.load(decay_ptr + steps + k))
            weights = CB * scale[None, :]
            if seq_idx_ptr is not None:
                ids_k = tl.load(seq_idx_ptr + first + k)
                weights = tl.where(ids[:, None] == ids_k[None, :], weights, 0.0)
            x_rows = (((first + k) * num_heads + head) * head_dim)[:, None]
            x = tl.load(x_ptr + x_rows + p[None, :], mask=p_mask, other=0.0)
            acc = add_product(weights, x, acc, start)
        acc *= tl.exp(decay - decay_0)[:, None]

        for start in range(m0, tl.minimum(m0 + BLOCK_M, length), BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            known = k < length
            CB = tl.load(CB_ptr + CB_rows + k[None, :], mask=inside[:, None] & known[None, :], other=0.0)
            decay_k = tl.load(decay_ptr + steps + k, mask=known, other=0.0)
            dt_k = tl.load(dt_ptr + steps + k, mask=known, other=0.0)
            reached = k[None, :] <= m[:, None]
            if seq_idx_ptr is not None:
                ids_k = tl.load(seq_idx_ptr + first + k, mask=known, other=-2)
                reached = reached & (ids[:, None] == ids_k[None, :])
            weights = tl.where(reached, CB * tl.exp(decay[:, None] - decay_k[None, :]) * dt_k[None, :], 0.0)
            x_rows = (((first + k) * num_heads + head) * head_dim)[:, None]
            x = tl.load(x_ptr + x_rows + p[None, :], mask=known[:, None] & p_mask, other=0.0)
            acc = add_product(weights, x, acc, start)

        places = ((tokens * num_heads + head) * head_dim)[:, None] + p[None, :]
        mask = inside[:, None] & p_mask
        if D_ptr is not None:
            acc += tl.load(D_ptr + head) * tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
        if z_ptr is not None:
            z = tl.load(z_ptr + places, mask=mask, other=0.0).to(tl.float32)
            acc *= z / (1.0 + tl.exp(-z))
        tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=mask)


def ssd_chunk_scan(x, dt, dA_cumsum, C, CB, prev_states, D, z, seq_idx, out):
    batch, seq_len, num_heads, head_dim = x.shape
    num_groups, state_dim = C.shape[2:]
    num_chunks, chunk_size = dt.shape[2:]
    wide = x.element_size() == 4
    block_p = max(16, min(64 if wide else 128, triton.next_power_of_2(head_dim)))
    tiles_m = triton.cdiv(min(seq_len, chunk_size), 64)
    grid = (batch * num_chunks * tiles_m * num_heads, triton.cdiv(head_dim, block_p))
    scan_tokens[grid](
        x,
        dt,
        dA_cumsum,
        C,
        CB,
        prev_states,
        D,
        z,
        seq_idx,
        out,
        seq_len,
        num_heads,
        num_groups,
        head_dim,
        state_dim,
        chunk_size,
        tiles_m,
        BLOCK_M=64,
        BLOCK_P=block_p,
        BLOCK_K=32 if wide else 64,
        num_warps=4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
