"""Causal convolution in tiles of the flat batch, wherever sequences begin: every program has the same work.

A small launch before finds the sequence of each token by bisection, and one behind keeps the states, once all have been
read.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def locate(cu_seqlens_ptr, seq_ptr, within_ptr, num_tokens, num_seqs, BITS: tl.constexpr, TOKENS: tl.constexpr):
    """Write the sequence of each token, and the token's number in it."""
    tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    # The last sequence that begins at or before the token: it is not empty.
    seq = tl.zeros((TOKENS,), tl.int32)
    for bit in tl.static_range(BITS):
        later = seq + (1 << (BITS - 1 - bit))
        begins = tl.load(cu_seqlens_ptr + later, mask=later < num_seqs, other=0)
        seq = tl.where((later < num_seqs) & (begins <= tokens), later, seq)
    tl.store(seq_ptr + tokens, seq, mask=tokens < num_tokens)
    tl.store(within_ptr + tokens, tokens - tl.load(cu_seqlens_ptr + seq), mask=tokens < num_tokens)


@triton.jit
def convolve_tile(
    x_ptr,
    weight_ptr,
    bias_ptr,
    seq_ptr,
    within_ptr,
    slots_ptr,
    has_initial_ptr,
    state_ptr,
    y_ptr,
    num_tokens,
    hidden,
    WIDTH: tl.constexpr,
    SILU: tl.constexpr,
    TOKENS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    first = tl.program_id(0) * TOKENS
    tokens = first + tl.arange(0, TOKENS)
    # Offsets inside of a tile have 32 bits.
    x_ptr += first.to(tl.int64) * hidden
    y_ptr += first.to(tl.int64) * hidden
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = (channels < hidden)[None, :]
    inside = (tokens < num_tokens)[:, None] & known
    seq = tl.load(seq_ptr + tokens, mask=tokens < num_tokens, other=0)
    within = tl.load(within_ptr + tokens, mask=tokens < num_tokens, other=0)
    # Only a tile in which a sequence begins, or began just before, has anything to do with states.
    near = tl.min(within, axis=0) < WIDTH - 1
    state_rows = tl.load(slots_ptr + seq).to(tl.int64) * (WIDTH - 1) + within
    has_initial = tl.load(has_initial_ptr + seq) != 0

    acc = tl.zeros((TOKENS, CHANNELS), tl.float32)
    for tap in tl.static_range(WIDTH):
        weight = tl.load(weight_ptr + channels * WIDTH + tap, mask=channels < hidden, other=0.0).to(tl.float32)
        back = WIDTH - 1 - tap
        fresh = (within >= back)[:, None] & inside
        source = (tokens - first - back)[:, None] * hidden + channels[None, :]
        acc += tl.load(x_ptr + source, mask=fresh, other=0.0).to(tl.float32) * weight[None, :]
    if near:
        for tap in tl.static_range(WIDTH - 1):
            weight = tl.load(weight_ptr + channels * WIDTH + tap, mask=channels < hidden, other=0.0).to(tl.float32)
            held = ((within < WIDTH - 1 - tap) & has_initial)[:, None] & inside
            old = tl.load(state_ptr + (state_rows + tap)[:, None] * hidden + channels[None, :], mask=held, other=0.0)
            acc += old.to(tl.float32) * weight[None, :]
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + channels, mask=channels < hidden, other=0.0).to(tl.float32)[None, :]
    if SILU:
        acc = acc / (1.0 + tl.exp(-acc))
    places = y_ptr + (tokens - first)[:, None] * hidden + channels[None, :]
    tl.store(places, acc.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def keep_last(
    x_ptr,
    cu_seqlens_ptr,
    slots_ptr,
    has_initial_ptr,
    state_ptr,
    hidden,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Row after row, so that those of a short sequence move before they are overwritten."""
    seq = tl.program_id(0)
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = channels < hidden
    begin = tl.load(cu_seqlens_ptr + seq).to(tl.int64)
    length = tl.load(cu_seqlens_ptr + seq + 1) - begin
    state = state_ptr + tl.load(slots_ptr + seq).to(tl.int64) * (WIDTH - 1) * hidden + channels
    has_initial = tl.load(has_initial_ptr + seq) != 0
    for row in tl.static_range(WIDTH - 1):
        t = length + row - (WIDTH - 1)
        value = tl.load(x_ptr + (begin + t) * hidden + channels, mask=known & (t >= 0), other=0.0)
        old = tl.load(state + (row + length) * hidden, mask=known & has_initial & (t < 0), other=0.0)
        tl.store(state + row * hidden, tl.where(t < 0, old, value), mask=known)


def causal_conv1d_fwd(x, weight, bias, cu_seqlens, idx_mapping, has_initial_state, conv_state, silu, y):
    num_tokens, hidden = x.shape
    width, num_seqs = weight.shape[1], idx_mapping.shape[0]
    # Rows that are no whole vectors are loaded value by value, with an address for each.
    tokens, channels = 8 if hidden % 16 else 16, min(256, triton.next_power_of_2(hidden))
    seq, within = torch.empty((2, num_tokens), dtype=torch.int32, device=x.device)
    bits = (num_seqs - 1).bit_length()
    locate[(triton.cdiv(num_tokens, 128),)](cu_seqlens, seq, within, num_tokens, num_seqs, BITS=bits, TOKENS=128)
    convolve_tile[(triton.cdiv(num_tokens, tokens), triton.cdiv(hidden, channels))](
        x,
        weight,
        bias,
        seq,
        within,
        idx_mapping,
        has_initial_state,
        conv_state,
        y,
        num_tokens,
        hidden,
        WIDTH=width,
        SILU=silu,
        TOKENS=tokens,
        CHANNELS=channels,
        num_warps=4,
    )
    keep_last[(num_seqs, triton.cdiv(hidden, channels))](
        x,
        cu_seqlens,
        idx_mapping,
        has_initial_state,
        conv_state,
        hidden,
        WIDTH=width,
        CHANNELS=channels,
        num_warps=1,
    )
