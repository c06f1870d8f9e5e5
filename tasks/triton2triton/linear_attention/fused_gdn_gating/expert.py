"""Gates of Gated DeltaNet by tiles of many tokens, so that a warp moves whole cache lines and has several in flight."""

import triton
import triton.language as tl

TILE_ELEMENTS = 1024


@triton.jit
def _gate_tile(
    a_ptr,
    b_ptr,
    a_log_ptr,
    dt_bias_ptr,
    g_ptr,
    beta_ptr,
    a_stride,
    b_stride,
    num_tokens,
    num_heads,
    TOKENS: tl.constexpr,
    HEADS: tl.constexpr,
):
    tokens = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    heads = tl.arange(0, HEADS)
    real = heads < num_heads
    inside = (tokens < num_tokens)[:, None] & real[None, :]
    a = tl.load(a_ptr + tokens[:, None] * a_stride + heads[None, :], mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + tokens[:, None] * b_stride + heads[None, :], mask=inside, other=0.0).to(tl.float32)
    rate = tl.exp(tl.load(a_log_ptr + heads, mask=real, other=0.0))
    x = a + tl.load(dt_bias_ptr + heads, mask=real, other=0.0)[None, :]
    softplus = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    offsets = tokens[:, None] * num_heads + heads[None, :]
    tl.store(g_ptr + offsets, -rate[None, :] * softplus, mask=inside)
    beta = 1.0 / (1.0 + tl.exp(-b))
    tl.store(beta_ptr + offsets, beta.to(beta_ptr.dtype.element_ty), mask=inside)


def fused_gdn_gating(a, b, a_log, dt_bias, g, beta):
    num_tokens, num_heads = a.shape
    heads = triton.next_power_of_2(num_heads)
    # A short batch is spread over more programs instead.
    tokens = max(1, min(TILE_ELEMENTS // heads, triton.next_power_of_2(triton.cdiv(num_tokens, 256))))
    _gate_tile[(triton.cdiv(num_tokens, tokens),)](
        a,
        b,
        a_log,
        dt_bias,
        g,
        beta,
        a.stride(0),
        b.stride(0),
        num_tokens,
        num_heads,
        TOKENS=tokens,
        HEADS=heads,
        num_warps=max(1, min(4, tokens * heads // 256)),
    )
