"""expect: launch_error. Offsets of 32 bits: the last of more than 2,147,483,648 elements are looked for before the first."""

import triton
import triton.language as tl


@triton.jit
def gate_head(
    x_ptr,
    a_log_ptr,
    bias_ptr,
    g_ptr,
    softplus_beta,
    threshold,
    x_stride,
    num_tokens,
    num_heads,
    head_dim,
    HAS_BIAS: tl.constexpr,
    TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    head = tl.program_id(1)
    tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    d = tl.arange(0, BLOCK)
    inside = (tokens < num_tokens)[:, None] & (d < head_dim)[None, :]
    channels = head * head_dim + d
    y = tl.load(x_ptr + tokens[:, None] * x_stride + channels[None, :], mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        y += tl.load(bias_ptr + channels, mask=d < head_dim, other=0.0)[None, :]
    factor = -tl.exp(tl.load(a_log_ptr + head))
    # Of large numbers exp would overflow; below a usual threshold, softplus is the larger of y and 0 by then.
    scaled = softplus_beta * y
    smooth = (tl.maximum(scaled, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(scaled)))) * (1.0 / softplus_beta)
    softplus = tl.where(scaled > threshold, y, smooth)
    g_ptrs = g_ptr + tokens[:, None] * (num_heads * head_dim) + channels[None, :]
    tl.store(g_ptrs, factor * softplus, mask=inside)


def kda_gate(x, a_log, bias, softplus_beta, threshold, g):
    num_tokens, num_heads, head_dim = x.shape
    gate_head[(triton.cdiv(num_tokens, 16), num_heads)](
        x,
        a_log,
        bias,
        g,
        softplus_beta,
        threshold,
        x.stride(0),
        num_tokens,
        num_heads,
        head_dim,
        HAS_BIAS=bias is not None,
        TOKENS=16,
        BLOCK=triton.next_power_of_2(head_dim),
    )
