"""Gate of Kimi Delta Attention: one program per token and head."""

import triton
import triton.language as tl


@triton.jit
def gate_row(
    x_ptr,
    a_log_ptr,
    bias_ptr,
    g_ptr,
    softplus_beta,
    threshold,
    x_stride,
    num_heads,
    head_dim,
    HAS_BIAS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    head = row % num_heads
    x_row = x_ptr + row // num_heads * x_stride + head * head_dim
    factor = -tl.exp(tl.load(a_log_ptr + head))
    # Channels in blocks: a head may be longer than one.
    for start in range(0, head_dim, BLOCK):
        d = start + tl.arange(0, BLOCK)
        inside = d < head_dim
        y = tl.load(x_row + d, mask=inside, other=0.0).to(tl.float32)
        if HAS_BIAS:
            y += tl.load(bias_ptr + head * head_dim + d, mask=inside, other=0.0)
        # Of large numbers exp would overflow; below a usual threshold, softplus is the larger of y and 0 by then.
        scaled = softplus_beta * y
        smooth = (tl.maximum(scaled, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(scaled)))) / softplus_beta
        softplus = tl.where(scaled > threshold, y, smooth)
        tl.store(g_ptr + row * head_dim + d, factor * softplus, mask=inside)


def kda_gate(x, a_log, bias, softplus_beta, threshold, g):
    num_tokens, num_heads, head_dim = x.shape
    gate_row[(num_tokens * num_heads,)](
        x,
        a_log,
        bias,
        g,
        softplus_beta,
        threshold,
        x.stride(0),
        num_heads,
        head_dim,
        HAS_BIAS=bias is not None,
        BLOCK=min(64, triton.next_power_of_2(head_dim)),
    )
