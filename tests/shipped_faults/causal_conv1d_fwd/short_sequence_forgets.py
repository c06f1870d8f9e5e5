"""expect: wrong_result in seen-02. State longer than the window: a sequence with fewer tokens than the state has rows loses the old ones."""

import triton
import triton.language as tl


@triton.jit
def convolve(
    x_ptr,
    weight_ptr,
    bias_ptr,
    cu_seqlens_ptr,
    slots_ptr,
    has_initial_ptr,
    state_ptr,
    y_ptr,
    hidden,
    width,
    stretches,
    SILU: tl.constexpr,
    TOKENS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    seq = tl.program_id(0) // stretches
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = channels < hidden
    begin = tl.load(cu_seqlens_ptr + seq).to(tl.int64)
    length = tl.load(cu_seqlens_ptr + seq + 1) - begin
    slot = tl.load(slots_ptr + seq).to(tl.int64)
    has_initial = tl.load(has_initial_ptr + seq) != 0
    bias = tl.zeros((CHANNELS,), tl.float32)
    if bias_ptr is not None:
        bias += tl.load(bias_ptr + channels, mask=known, other=0.0).to(tl.float32)
    # Tokens of a long sequence are dealt out in turn to the programs that it has.
    for start in range(tl.program_id(0) % stretches * TOKENS, length, stretches * TOKENS):
        tokens = start + tl.arange(0, TOKENS)
        acc = tl.zeros((TOKENS, CHANNELS), tl.float32) + bias[None, :]
        for tap in range(width):
            source = tokens - (width - 1) + tap
            fresh = ((source >= 0) & (source < length))[:, None] & known[None, :]
            rows = (begin + source)[:, None] * hidden
            u = tl.load(x_ptr + rows + channels[None, :], mask=fresh, other=0.0).to(tl.float32)
            held = (has_initial & (source < 0))[:, None] & known[None, :]
            state_rows = (slot * (width - 1) + source + width - 1)[:, None] * hidden
            u += tl.load(state_ptr + state_rows + channels[None, :], mask=held, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + channels * width + tap, mask=known, other=0.0).to(tl.float32)
            acc += u * weight[None, :]
        if SILU:
            acc = acc / (1.0 + tl.exp(-acc))
        places = (begin + tokens)[:, None] * hidden + channels[None, :]
        inside = (tokens < length)[:, None] & known[None, :]
        tl.store(y_ptr + places, acc.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def keep_state(x_ptr, cu_seqlens_ptr, slots_ptr, has_initial_ptr, state_ptr, hidden, width, CHANNELS: tl.constexpr):
    seq = tl.program_id(0)
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    known = channels < hidden
    end = tl.load(cu_seqlens_ptr + seq + 1).to(tl.int64)
    length = end - tl.load(cu_seqlens_ptr + seq)
    slot = tl.load(slots_ptr + seq).to(tl.int64)
    for row in range(width - 1):
        source = length + row - (width - 1)
        fresh = known & (source >= 0)
        value = tl.load(x_ptr + (end - length + source) * hidden + channels, mask=fresh, other=0.0)
        tl.store(state_ptr + (slot * (width - 1) + row) * hidden + channels, value, mask=known)


def causal_conv1d_fwd(x, weight, bias, cu_seqlens, idx_mapping, has_initial_state, conv_state, silu, y):
    num_tokens, hidden = x.shape
    width, num_seqs = weight.shape[1], idx_mapping.shape[0]
    blocks = triton.cdiv(hidden, 64)
    stretches = min(triton.cdiv(num_tokens, 64), max(1, 4096 // num_seqs))
    convolve[(num_seqs * stretches, blocks)](
        x,
        weight,
        bias,
        cu_seqlens,
        idx_mapping,
        has_initial_state,
        conv_state,
        y,
        hidden,
        width,
        stretches,
        SILU=silu,
        TOKENS=16,
        CHANNELS=64,
    )
    keep_state[(num_seqs, blocks)](
        x, cu_seqlens, idx_mapping, has_initial_state, conv_state, hidden, width, CHANNELS=64
    )
