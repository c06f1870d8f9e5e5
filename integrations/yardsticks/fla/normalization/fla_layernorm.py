"""FLA's layer norm with a residual stream, tuned by Triton. It has no gate; here it writes the stream in place."""

import triton
from fla.modules.norm.layernorm import layer_norm_fwd_kernel, layer_norm_fwd_kernel_row


def fla_layernorm(x, gate, weight, bias, residual, eps, y, mean, rstd):
    assert gate is None, "the engine has no gate here"
    rows, columns = x.shape
    common = {
        "x": x,
        "y": y,
        "w": weight,
        "b": bias,
        "res": residual,
        "res_out": residual,
        "mean": mean,
        "rstd": rstd,
        "eps": eps,
        "G": 1,
        "D": columns,
        "BD": triton.next_power_of_2(columns),
        "IS_RMS_NORM": False,
        "HAS_RESIDUAL": True,
        "STORE_RESIDUAL_OUT": True,
        "HAS_WEIGHT": weight is not None,
        "HAS_BIAS": bias is not None,
    }
    if columns <= 512:
        layer_norm_fwd_kernel[lambda meta: (triton.cdiv(rows, meta["BT"]),)](
            T=rows, NB=triton.cdiv(rows, 2048), **common
        )
    else:
        layer_norm_fwd_kernel_row[(rows,)](**common)
