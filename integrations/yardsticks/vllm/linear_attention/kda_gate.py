"""vLLM's gate of Kimi Delta Attention, tuned by Triton."""

import triton
from vllm.third_party.flash_linear_attention.ops.kda import kda_gate_fwd_kernel


def kda_gate(x, a_log, bias, softplus_beta, threshold, g):
    tokens, heads, dim = x.shape
    kda_gate_fwd_kernel[lambda meta: (triton.cdiv(tokens, meta["BT"]), heads)](
        x,
        a_log,
        g,
        bias,
        0.0,
        softplus_beta,
        threshold,
        tokens,
        heads,
        dim,
        BD=triton.next_power_of_2(dim),
        HAS_BIAS=bias is not None,
        USE_LOWER_BOUND=False,
    )
