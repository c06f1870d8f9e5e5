"""One step of a causal convolution: tiles of two sequences, every row of their states in flight at once.

The baseline has a thread per channel, which loads two bytes of a row, then waits for them before it loads the next: at
16 bits, the 64 warps of an SM of an H200 have 4 KB in flight, where 4.8 TB/s at 700 ns need 25 KB. It also reads the
weight, of stride `width`, anew for every sequence: four loads of two bytes a channel beside four of state and x.

Here a program loads x and all rows of two sequences before it stores, 16 bytes a thread: 16 KB at 16 bits and three
rows. The weight is read once for both, in one vector of `width` taps a channel. state_len and width are constants.
"""

import triton
import triton.language as tl

SEQS = 2


@triton.jit
def _convolve_tile(
    x_ptr,
    weight_ptr,
    bias_ptr,
    slots_ptr,
    state_ptr,
    y_ptr,
    num_seqs,
    x_stride,
    hidden,
    WIDTH: tl.constexpr,
    STATE_LEN: tl.constexpr,
    SILU: tl.constexpr,
    SEQS: tl.constexpr,
    CHANNELS: tl.constexpr,
    TAPS: tl.constexpr,
):
    seqs = tl.program_id(0).to(tl.int64) * SEQS + tl.arange(0, SEQS)
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    slot = tl.load(slots_ptr + seqs, mask=seqs < num_seqs, other=-1).to(tl.int64)
    used = (slot >= 0)[:, None] & (channels < hidden)[None, :]
    taps = tl.arange(0, TAPS)[None, :]
    weight_mask = (channels < hidden)[:, None] & (taps < WIDTH)
    weights = tl.load(weight_ptr + channels[:, None] * WIDTH + taps, mask=weight_mask, other=0.0)
    x = tl.load(x_ptr + seqs[:, None] * x_stride + channels[None, :], mask=used, other=0.0)
    state = state_ptr + (slot * STATE_LEN * hidden)[:, None] + channels[None, :]
    rows = ()
    for row in tl.static_range(STATE_LEN):
        rows += (tl.load(state + row * hidden, mask=used, other=0.0),)
    rows += (x,)
    # Warps that hold the same places in other layouts have loaded them before any is overwritten.
    tl.debug_barrier()

    acc = tl.zeros((SEQS, CHANNELS), tl.float32)
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + channels, mask=channels < hidden, other=0.0).to(tl.float32)[None, :]
    for row in tl.static_range(STATE_LEN):
        tl.store(state + row * hidden, rows[row + 1], mask=used)
    for tap in tl.static_range(WIDTH):
        weight = tl.sum(tl.where(taps == tap, weights.to(tl.float32), 0.0), axis=1)
        acc += rows[STATE_LEN + 1 - WIDTH + tap].to(tl.float32) * weight[None, :]
    if SILU:
        acc = acc / (1.0 + tl.exp(-acc))
    acc = tl.where(used, acc, 0.0)
    inside = (seqs < num_seqs)[:, None] & (channels < hidden)[None, :]
    tl.store(y_ptr + seqs[:, None] * hidden + channels[None, :], acc.to(y_ptr.dtype.element_ty), mask=inside)


def causal_conv1d_update(x, weight, bias, idx_mapping, conv_state, silu, y):
    num_seqs, hidden = x.shape
    width, state_len = weight.shape[1], conv_state.shape[1]
    # 16 bytes of each sequence a thread; of long states, half of it, so that their rows fit in registers.
    channels = (2048 if state_len <= 8 else 1024) // x.element_size()
    _convolve_tile[(triton.cdiv(num_seqs, SEQS), triton.cdiv(hidden, channels))](
        x,
        weight,
        bias,
        idx_mapping,
        conv_state,
        y,
        num_seqs,
        x.stride(0),
        hidden,
        WIDTH=width,
        STATE_LEN=state_len,
        SILU=silu,
        SEQS=SEQS,
        CHANNELS=channels,
        TAPS=triton.next_power_of_2(width),
        num_warps=4,
    )
