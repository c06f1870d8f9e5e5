"""Gate of Kimi Delta Attention in tiles of several tokens and neighbouring channels, regardless of heads.

A thread has the same few channels of all its tokens, so that it reads their biases and factors once. The softplus takes
one exponential and a polynomial: the logarithm of Triton is three times as many instructions.
"""

import triton
import triton.language as tl

TILE = 4096


@triton.jit
def _log1p(t):
    """Return log(1 + t) for t in [0, 1], with a relative error of 4e-7: t times a minimax polynomial."""
    p = 0.0440892811 - 0.00853910475 * t
    p = p * t - 0.107681252
    p = p * t + 0.177452119
    p = p * t - 0.244954534
    p = p * t + 0.332754785
    p = p * t - 0.499974054
    p = p * t + 0.999999806
    return p * t


@triton.jit
def _gate_tile(
    x_ptr,
    a_log_ptr,
    bias_ptr,
    g_ptr,
    softplus_beta,
    inverse_beta,
    threshold,
    x_stride,
    num_tokens,
    width,
    head_dim,
    HAS_BIAS: tl.constexpr,
    TOKENS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    strips = tl.cdiv(width, CHANNELS)
    channels = tl.program_id(0) % strips * CHANNELS + tl.arange(0, CHANNELS)
    tokens = tl.program_id(0) // strips * TOKENS + tl.arange(0, TOKENS)
    real = channels < width
    inside = (tokens < num_tokens)[:, None] & real[None, :]
    rows = tokens.to(tl.int64)[:, None]
    y = tl.load(x_ptr + rows * x_stride + channels[None, :], mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        y += tl.load(bias_ptr + channels, mask=real, other=0.0)[None, :]
    factor = -tl.exp(tl.load(a_log_ptr + channels // head_dim, mask=real, other=0.0))[None, :]
    scaled = softplus_beta * y
    tail = _log1p(tl.exp2(tl.abs(scaled) * -1.4426950408889634))
    smooth = tl.maximum(y, 0.0) + tail * inverse_beta
    tl.store(g_ptr + rows * width + channels[None, :], factor * tl.where(scaled > threshold, y, smooth), mask=inside)


def kda_gate(x, a_log, bias, softplus_beta, threshold, g):
    num_tokens, num_heads, head_dim = x.shape
    width = num_heads * head_dim
    channels = min(512, triton.next_power_of_2(width))
    tokens = TILE // channels
    _gate_tile[(triton.cdiv(width, channels) * triton.cdiv(num_tokens, tokens),)](
        x,
        a_log,
        bias,
        g,
        softplus_beta,
        1.0 / softplus_beta,
        threshold,
        x.stride(0),
        num_tokens,
        width,
        head_dim,
        HAS_BIAS=bias is not None,
        TOKENS=tokens,
        CHANNELS=channels,
        num_warps=4,
    )
