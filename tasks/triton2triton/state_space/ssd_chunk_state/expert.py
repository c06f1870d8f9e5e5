"""Mamba-2 chunk states in tiles of up to 64 by 128, products in the inputs' dtype, heads of a group side by side.

float32 is multiplied as three TF32 products on NVIDIA, in tiles of up to 64 by 64: three of them fit on an SM, two of
64 by 128.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


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

    acc = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    for start in range(0, length, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = k < length
        decay = tl.load(decay_ptr + steps + k, mask=inside, other=0.0)
        scale = tl.load(dt_ptr + steps + k, mask=inside, other=0.0) * tl.exp(total - decay)
        if seq_idx_ptr is not None:
            ids = tl.load(seq_idx_ptr + first + k, mask=inside, other=-1)
            scale = tl.where(ids == tl.load(seq_idx_ptr + first + length - 1), scale, 0.0)
        x_rows = (((first + k) * num_heads + head) * head_dim)[:, None]
        x = tl.load(x_ptr + x_rows + p[None, :], mask=inside[:, None] & (p < head_dim)[None, :], other=0.0)
        B_rows = ((first + k) * B_stride + group * state_dim)[:, None]
        B = tl.load(B_ptr + B_rows + n[None, :], mask=inside[:, None] & (n < state_dim)[None, :], other=0.0)
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
        BLOCK_P=block_p,
        BLOCK_N=block_n,
        BLOCK_K=32 if wide else 64,
        num_warps=4,
        # With three stages, two steps are in flight. AMD keeps what fits into 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
