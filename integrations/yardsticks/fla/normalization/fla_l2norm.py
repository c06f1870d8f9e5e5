"""FLA's L2 norm, tuned by Triton. Its rows are contiguous, so slices of wider rows are copied, as the engine does."""

import triton
from fla.modules.norm.l2norm import l2norm_fwd_kernel, l2norm_fwd_kernel_row


def fla_l2norm(x, eps, y, rstd):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    if columns <= 512:
        l2norm_fwd_kernel[lambda meta: (triton.cdiv(rows, meta["BT"]),)](
            x=x.contiguous(),
            y=y,
            rstd=rstd,
            eps=eps,
            T=rows,
            D=columns,
            BD=block,
            NB=triton.cdiv(rows, 65536),
        )
    else:
        l2norm_fwd_kernel_row[(rows,)](x=x.contiguous(), y=y, rstd=rstd, eps=eps, D=columns, BD=block)
