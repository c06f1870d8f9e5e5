"""expect: wrong_result in heldout-23. Missing term: nothing is carried from one block of 32 strips to the next."""

import torch
import triton
import triton.language as tl

ENOUGH_PROGRAMS = 4096
STAGES = tl.constexpr(6)


@triton.jit
def reset_bits(resets_ptr, first, last, STRIP: tl.constexpr):
    """Return the resets of tokens first … last - 1, of which bit 0 is the first."""
    places = tl.arange(0, STRIP)
    resets = tl.load(resets_ptr + first + places, mask=first + places < last, other=0)
    return tl.sum(resets.to(tl.int64) << places.to(tl.int64), axis=0)


@triton.jit
def sum_strips(
    x_ptr, decay_ptr, resets_ptr, kept_ptr, states_ptr, T, D, strips, STRIP: tl.constexpr, CHANNELS: tl.constexpr
):
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    strip, batch = tl.program_id(1), tl.program_id(2).to(tl.int64)
    inside = channels < D
    first = strip * STRIP
    last = tl.minimum(first + STRIP, T)
    bits = reset_bits(resets_ptr + batch * T, first, last, STRIP)
    kept = tl.full((CHANNELS,), 1.0, dtype=tl.float32)
    state = tl.zeros((CHANNELS,), dtype=tl.float32)
    for token in tl.range(first, last, num_stages=STAGES):
        place = (batch * T + token) * D + channels
        decay = tl.load(decay_ptr + place, mask=inside, other=0.0)
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        decay = tl.where(((bits >> (token - first)) & 1) != 0, 0.0, decay)
        kept *= decay
        state = decay * state + x
    out = (batch * strips + strip) * D + channels
    tl.store(kept_ptr + out, kept, mask=inside)
    tl.store(states_ptr + out, state, mask=inside)


@triton.jit
def join(first_kept, first_state, second_kept, second_state):
    return first_kept * second_kept, second_kept * first_state + second_state


@triton.jit
def carry_states(kept_ptr, states_ptr, D, strips, STRIPS: tl.constexpr, CHANNELS: tl.constexpr):
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    batch = tl.program_id(1).to(tl.int64)
    rows = tl.arange(0, STRIPS)
    carry = tl.zeros((CHANNELS,), dtype=tl.float32)
    for start in range(0, strips, STRIPS):
        strip = start + rows
        place = (batch * strips + strip[:, None]) * D + channels[None, :]
        inside = (strip < strips)[:, None] & (channels < D)[None, :]
        kept = tl.load(kept_ptr + place, mask=inside, other=1.0)
        state = tl.load(states_ptr + place, mask=inside, other=0.0)
        kept, state = tl.associative_scan((kept, state), 0, join)
        tl.store(states_ptr + place, state, mask=inside)
        carry = tl.sum(tl.where(rows[:, None] == STRIPS - 1, state, 0.0), axis=0)


@triton.jit
def scan_strips(
    x_ptr, decay_ptr, resets_ptr, states_ptr, out_ptr, T, D, strips, STRIP: tl.constexpr, CHANNELS: tl.constexpr
):
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    strip, batch = tl.program_id(1), tl.program_id(2).to(tl.int64)
    inside = channels < D
    first = strip * STRIP
    last = tl.minimum(first + STRIP, T)
    bits = reset_bits(resets_ptr + batch * T, first, last, STRIP)
    before = (batch * strips + strip - 1) * D + channels
    state = tl.zeros((CHANNELS,), dtype=tl.float32)
    if strip > 0:
        state = tl.load(states_ptr + before, mask=inside, other=0.0)
    for token in tl.range(first, last, num_stages=STAGES):
        place = (batch * T + token) * D + channels
        decay = tl.load(decay_ptr + place, mask=inside, other=0.0)
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        decay = tl.where(((bits >> (token - first)) & 1) != 0, 0.0, decay)
        state = decay * state + x
        tl.store(out_ptr + place, state.to(out_ptr.dtype.element_ty), mask=inside)


def scan_segments(x, decay, resets, out):
    B, T, D = x.shape
    blocks = triton.cdiv(D, 128)
    strip = 64 if B * blocks * T >= 64 * ENOUGH_PROGRAMS else 32
    strips = triton.cdiv(T, strip)
    kept = torch.empty((B, strips, D), dtype=torch.float32, device=x.device)
    states = torch.empty((B, strips, D), dtype=torch.float32, device=x.device)
    grid = (blocks, strips, B)
    if strips > 1:
        sum_strips[grid](x, decay, resets, kept, states, T, D, strips, STRIP=strip, CHANNELS=128, num_warps=1)
        rows = min(32, triton.next_power_of_2(strips))
        carry_states[(triton.cdiv(D, 32), B)](kept, states, D, strips, STRIPS=rows, CHANNELS=32, num_warps=4)
    scan_strips[grid](x, decay, resets, states, out, T, D, strips, STRIP=strip, CHANNELS=128, num_warps=1)
