"""Mamba-2 chunk scan with the whole head in one tile, heads side by side, and no masks where all tiles are whole.

The baseline's neighbouring programs belong to different chunks, so that x and the states come from memory once for each
tile of a chunk. Here all heads of a tile of tokens come first, then the next tile of the same chunk. Whole tiles have
no masks, and offsets within a chunk are 32-bit: together one in eight of the baseline's instructions in a step. z is
loaded before the products of the chunk and used after them. With at most 128 registers a thread, four programs of
16-bit inputs fit on an SM. float32 is multiplied as three TF32 products on NVIDIA.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def load_block(places, mask, WHOLE: tl.constexpr):
    """Load a block, without its mask where WHOLE says that it is true everywhere."""
    if WHOLE:
        return tl.load(places)
    return tl.load(places, mask=mask, other=0)


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
    WHOLE: tl.constexpr,
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
        # Bases of the chunk and head in 64 bits; what is within a chunk fits into 32.
        first = row * seq_len + chunk * chunk_size
        steps = ((row * num_heads + head) * num_chunks + chunk) * chunk_size
        C_ptr += (first * num_groups + group) * state_dim
        prev_ptr += ((row * num_chunks + chunk) * num_heads + head) * head_dim * state_dim
        CB_ptr += ((row * num_chunks + chunk) * num_groups + group) * chunk_size * chunk_size
        of_head = (first * num_heads + head) * head_dim
        token_size = num_heads * head_dim
        places = m[:, None] * token_size + p[None, :]
        mask = inside[:, None] & p_mask
        decay = load_block(decay_ptr + steps + m, inside, WHOLE)

        acc = tl.zeros((BLOCK_M, BLOCK_P), tl.float32)
        for start in range(0, state_dim, BLOCK_K):
            n = start + tl.arange(0, BLOCK_K)
            n_known = n < state_dim
            C_places = m[:, None] * (num_groups * state_dim) + n[None, :]
            C = load_block(C_ptr + C_places, inside[:, None] & n_known[None, :], WHOLE)
            prev = load_block(prev_ptr + (p[None, :] * state_dim + n[:, None]), n_known[:, None] & p_mask, WHOLE)
            acc = tl.dot(C, prev, acc, input_precision=PRECISION)
        kept = tl.exp(decay)
        ids = m
        if seq_idx_ptr is not None:
            ids = load_block(seq_idx_ptr + first + m, inside, WHOLE)
            before = tl.load(seq_idx_ptr + tl.maximum(first - 1, row * seq_len))
            kept = tl.where(ids == before, kept, 0.0)
        acc *= kept[:, None]

        if z_ptr is not None:
            z = load_block(z_ptr + of_head + places, mask, WHOLE)
        for start in range(0, tl.minimum(m0 + BLOCK_M, length), BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            known = k < length
            CB_places = m[:, None] * chunk_size + k[None, :]
            CB = load_block(CB_ptr + CB_places, inside[:, None] & known[None, :], WHOLE)
            decay_k = load_block(decay_ptr + steps + k, known, WHOLE)
            dt_k = load_block(dt_ptr + steps + k, known, WHOLE)
            x_places = k[:, None] * token_size + p[None, :]
            x = load_block(x_ptr + of_head + x_places, known[:, None] & p_mask, WHOLE)
            reached = k[None, :] <= m[:, None]
            if seq_idx_ptr is not None:
                ids_k = load_block(seq_idx_ptr + first + k, known, WHOLE)
                reached = reached & (ids[:, None] == ids_k[None, :])
            weights = tl.where(reached, CB * tl.exp(decay[:, None] - decay_k[None, :]) * dt_k[None, :], 0.0)
            # Never true: a use of the sum outside of products makes Triton wait for them in every step.
            if start < 0:
                acc = -acc
            acc = tl.dot(weights.to(x.dtype), x, acc, input_precision=PRECISION)

        if D_ptr is not None:
            acc += tl.load(D_ptr + head) * load_block(x_ptr + of_head + places, mask, WHOLE).to(tl.float32)
        if z_ptr is not None:
            z = z.to(tl.float32)
            acc *= z / (1.0 + tl.exp(-z))
        tl.store(out_ptr + of_head + places, acc.to(out_ptr.dtype.element_ty), mask=mask)


def ssd_chunk_scan(x, dt, dA_cumsum, C, CB, prev_states, D, z, seq_idx, out):
    batch, seq_len, num_heads, head_dim = x.shape
    num_groups, state_dim = C.shape[2:]
    num_chunks, chunk_size = dt.shape[2:]
    wide = x.element_size() == 4
    block_p = max(16, min(64 if wide else 128, triton.next_power_of_2(head_dim)))
    tiles_m = triton.cdiv(min(seq_len, chunk_size), 64)
    block_k = 32
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
        WHOLE=seq_len % chunk_size == 0
        and chunk_size % 64 == 0
        and head_dim % block_p == 0
        and state_dim % block_k == 0,
        BLOCK_M=64,
        BLOCK_P=block_p,
        BLOCK_K=block_k,
        num_warps=4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
