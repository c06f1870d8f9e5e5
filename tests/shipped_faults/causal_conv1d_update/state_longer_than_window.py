"""expect: wrong_result in seen-02. State longer than the window: taps count from the oldest row, though more rows are kept."""

import triton
import triton.language as tl


@triton.jit
def convolve_step(
    x_ptr,
    weight_ptr,
    bias_ptr,
    slots_ptr,
    state_ptr,
    y_ptr,
    x_stride,
    hidden,
    width,
    state_len,
    SILU: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = channels < hidden
    slot = tl.load(slots_ptr + seq).to(tl.int64)
    acc = tl.zeros((CHANNELS,), tl.float32)
    if slot >= 0:
        x = tl.load(x_ptr + seq * x_stride + channels, mask=known, other=0.0)
        weight = tl.load(weight_ptr + channels * width + width - 1, mask=known, other=0.0)
        acc = x.to(tl.float32) * weight.to(tl.float32)
        if bias_ptr is not None:
            acc += tl.load(bias_ptr + channels, mask=known, other=0.0).to(tl.float32)
        for row in range(state_len):
            place = state_ptr + (slot * state_len + row) * hidden + channels
            old = tl.load(place, mask=known, other=0.0)
            tap = row
            weight = tl.load(weight_ptr + channels * width + tap, mask=known & (tap < width - 1), other=0.0)
            acc += old.to(tl.float32) * weight.to(tl.float32)
            if row > 0:
                tl.store(place - hidden, old, mask=known)
        tl.store(state_ptr + (slot * state_len + state_len - 1) * hidden + channels, x, mask=known)
        if SILU:
            acc = acc / (1.0 + tl.exp(-acc))
    tl.store(y_ptr + seq * hidden + channels, acc.to(y_ptr.dtype.element_ty), mask=known)


def causal_conv1d_update(x, weight, bias, idx_mapping, conv_state, silu, y):
    num_seqs, hidden = x.shape
    convolve_step[(num_seqs, triton.cdiv(hidden, 64))](
        x,
        weight,
        bias,
        idx_mapping,
        conv_state,
        y,
        x.stride(0),
        hidden,
        weight.shape[1],
        conv_state.shape[1],
        SILU=silu,
        CHANNELS=64,
        num_warps=2,
    )
