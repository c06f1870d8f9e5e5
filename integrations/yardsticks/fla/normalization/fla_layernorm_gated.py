"""FLA's gated norm of heads, tuned by Triton. Its rows are contiguous, so a gate in wider rows is copied."""

import torch
import triton
from fla.modules.norm.fused_norm_gate import layer_norm_gated_fwd_kernel


def fla_layernorm_gated(x, gate, weight, bias, eps, sigmoid_gate, rms_norm, y):
    tokens, heads, dim = x.shape
    rows = tokens * heads
    statistics = torch.empty((2, rows), dtype=torch.float32, device=x.device)
    layer_norm_gated_fwd_kernel[lambda meta: (triton.cdiv(rows, meta["BT"]),)](
        x=x,
        g=gate.contiguous(),
        y=y,
        w=weight,
        b=bias,
        residual=None,
        residual_out=None,
        mean=statistics[0],
        rstd=statistics[1],
        eps=eps,
        T=rows,
        D=dim,
        BD=triton.next_power_of_2(dim),
        NB=triton.cdiv(rows, 65536),
        ACTIVATION="sigmoid" if sigmoid_gate else "swish",
        IS_RMS_NORM=rms_norm,
    )
