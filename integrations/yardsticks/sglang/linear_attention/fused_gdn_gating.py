"""SGLang's gates of Gated DeltaNet, with the launch parameters of its wrapper."""

import triton
from sglang.kernels.ops.attention.linear.fused_gdn_gating import fused_gdn_gating_kernel


def fused_gdn_gating(a, b, a_log, dt_bias, g, beta):
    tokens, heads = a.shape
    fused_gdn_gating_kernel[(tokens, 1, triton.cdiv(heads, 8))](
        g, beta, a_log, a, b, dt_bias, 1, a.stride(0), b.stride(0), heads, 1.0, 20.0, 8, num_warps=1
    )
