"""Mamba-2 chunk states in tiles of up to 64 by 128, products in the inputs' dtype, heads of a group side by side.

Whole tiles are loaded without masks, and offsets within a chunk are 32-bit. float32 is multiplied as three TF32
products on NVIDIA, in tiles of up to 64 by 64: three of them fit on an SM, two of 64 by 128.
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
def accumulate_state(
    x_ptr,
    dt_ptr,
    decay_ptr,
    B_ptr,
    seq_idx_ptr,
    states_ptr,
    B_stride,
    seq_len,
    num_heads,
    num_groups,
    head_dim,
    state_dim,
    chunk_size,
    WHOLE: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    head = tl.program_id(0) % num_heads
    num_chunks = tl.cdiv(seq_len, chunk_size)
    chunk = tl.program_id(0) // num_heads % num_chunks
    row = (tl.program_id(0) // num_heads // num_chunks).to(tl.int64)
    group = head // (num_heads // num_groups)
    tiles_n = tl.cdiv(state_dim, BLOCK_N)
    p = tl.program_id(1) // tiles_n * BLOCK_P + tl.arange(0, BLOCK_P)
    n = tl.program_id(1) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    length = tl.minimum(chunk_size, seq_len - chunk * chunk_size)
    first = row * seq_len + chunk * chunk_size
    steps = ((row * num_heads + head) * num_chunks + chunk) * chunk_size
    total = tl.load(decay_ptr + steps + length - 1)
    # Bases of the chunk in 64 bits; what is within it fits into 32.
    x_ptr += (first * num_heads + head) * head_dim
    B_ptr += first * B_stride + group * state_dim

    acc = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    for start in range(0, length, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < length
        decay = load_block(decay_ptr + steps + k, inside, WHOLE)
        scale = load_block(dt_ptr + steps + k, inside, WHOLE) * tl.exp(total - decay)
        if seq_idx_ptr is not None:
            ids = load_block(seq_idx_ptr + first + k, inside, WHOLE)
            scale = tl.where(ids == tl.load(seq_idx_ptr + first + length - 1), scale, 0.0)
        x_mask = inside[:, None] & (p < head_dim)[None, :]
        x = load_block(x_ptr + (k[:, None] * (num_heads * head_dim) + p[None, :]), x_mask, WHOLE)
        B_mask = inside[:, None] & (n < state_dim)[None, :]
        B = load_block(B_ptr + (k[:, None] * B_stride + n[None, :]), B_mask, WHOLE)
        scaled = (x.to(tl.float32) * scale[:, None]).to(B.dtype)
        # Never true: a use of the sum outside of products makes Triton wait for them in every step.
        if start < 0:
            acc = -acc
        acc = tl.dot(tl.trans(scaled), B, acc, input_precision=PRECISION)

    state_row = ((row * num_chunks + chunk) * num_heads + head) * head_dim
    places = (state_row + p)[:, None] * state_dim + n[None, :]
    mask = (p < head_dim)[:, None] & (n < state_dim)[None, :]
    tl.store(states_ptr + places, acc.to(states_ptr.dtype.element_ty), mask=mask)


def ssd_chunk_state(x, dt, dA_cumsum, B, seq_idx, states):
    batch, seq_len, num_heads, head_dim = x.shape
    num_groups, state_dim = B.shape[2:]
    num_chunks, chunk_size = dt.shape[2:]
    wide = x.element_size() == 4
    block_p = max(16, min(64, triton.next_power_of_2(head_dim)))
    block_n = max(16, min(64 if wide else 128, triton.next_power_of_2(state_dim)))
    block_k = 32 if wide else 64
    tiles = triton.cdiv(head_dim, block_p) * triton.cdiv(state_dim, block_n)
    accumulate_state[(batch * num_chunks * num_heads, tiles)](
        x,
        dt,
        dA_cumsum,
        B,
        seq_idx,
        states,
        B.stride(1),
        seq_len,
        num_heads,
        num_groups,
        head_dim,
        state_dim,
        chunk_size,
        WHOLE=seq_len % chunk_size == 0
        and chunk_size % block_k == 0
        and head_dim % block_p == 0
        and state_dim % block_n == 0,
        BLOCK_P=block_p,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
