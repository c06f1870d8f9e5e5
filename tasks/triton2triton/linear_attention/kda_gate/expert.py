"""Gate of Kimi Delta Attention in flat blocks of 2048 channels of the whole tensor, regardless of heads."""

import triton
import triton.language as tl


@triton.jit
def _gate_block(
    x_ptr,
    a_log_ptr,
    bias_ptr,
    g_ptr,
    softplus_beta,
    inverse_beta,
    threshold,
    x_stride,
    count,
    num_heads,
    head_dim,
    HAS_BIAS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    width = num_heads * head_dim
    channel = (i % width).to(tl.int32)
    factor = -tl.exp(tl.load(a_log_ptr + channel // head_dim, mask=inside, other=0.0))
    y = tl.load(x_ptr + i // width * x_stride + channel, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        y += tl.load(bias_ptr + channel, mask=inside, other=0.0)
    scaled = softplus_beta * y
    smooth = (tl.maximum(scaled, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(scaled)))) * inverse_beta
    tl.store(g_ptr + i, factor * tl.where(scaled > threshold, y, smooth), mask=inside)


def kda_gate(x, a_log, bias, softplus_beta, threshold, g):
    count = x.numel()
    _gate_block[(triton.cdiv(count, 2048),)](
        x,
        a_log,
        bias,
        g,
        softplus_beta,
        1.0 / softplus_beta,
        threshold,
        x.stride(0),
        count,
        x.shape[1],
        x.shape[2],
        HAS_BIAS=bias is not None,
        BLOCK=2048,
        num_warps=8,
    )
