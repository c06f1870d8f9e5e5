"""Gates of Gated DeltaNet: one program per token, all its heads."""

import triton
import triton.language as tl


@triton.jit
def gate_token(
    a_ptr, b_ptr, a_log_ptr, dt_bias_ptr, g_ptr, beta_ptr, a_stride, b_stride, num_heads, HEADS: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.arange(0, HEADS)
    inside = heads < num_heads
    a = tl.load(a_ptr + token * a_stride + heads, mask=inside, other=0.0).to(tl.float32)
    x = a + tl.load(dt_bias_ptr + heads, mask=inside, other=0.0)
    # The exponent is never positive, so that nothing overflows.
    softplus = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    rate = tl.exp(tl.load(a_log_ptr + heads, mask=inside, other=0.0))
    tl.store(g_ptr + token * num_heads + heads, -rate * softplus, mask=inside)
    b = tl.load(b_ptr + token * b_stride + heads, mask=inside, other=0.0).to(tl.float32)
    beta = 1.0 / (1.0 + tl.exp(-b))
    tl.store(beta_ptr + token * num_heads + heads, beta.to(beta_ptr.dtype.element_ty), mask=inside)


def fused_gdn_gating(a, b, a_log, dt_bias, g, beta):
    num_tokens, num_heads = a.shape
    gate_token[(num_tokens,)](
        a,
        b,
        a_log,
        dt_bias,
        g,
        beta,
        a.stride(0),
        b.stride(0),
        num_heads,
        HEADS=triton.next_power_of_2(num_heads),
    )
