"""Mamba's gated layer norm, with the launch parameters of its wrapper.

The engine stores factors by group. Where there are several, a kernel of ours turns them; its time counts.
"""

import torch
import triton
import triton.language as tl
from mamba_ssm.ops.triton.layernorm_gated import _layer_norm_fwd_1pass_kernel


@triton.jit
def turn(by_group, by_row, rows, groups, BLOCK: tl.constexpr):
    row, group = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1)
    tl.store(by_row + row * groups + group, tl.load(by_group + group * rows + row, mask=row < rows), mask=row < rows)


def layernorm_gated(x, z, weight, bias, eps, norm_before_gate, rms_norm, y, rstd):
    rows, columns = x.shape
    groups = rstd.shape[1]
    size = columns // groups
    block = triton.next_power_of_2(size)
    factors = rstd if groups == 1 else torch.empty((groups, rows), dtype=torch.float32, device=x.device)
    _layer_norm_fwd_1pass_kernel[(rows, groups)](
        x,
        y,
        weight,
        bias,
        z,
        None if rms_norm else torch.empty((groups, rows), dtype=torch.float32, device=x.device),
        factors,
        x.stride(0),
        y.stride(0),
        0 if z is None else z.stride(0),
        rows,
        size,
        eps,
        BLOCK_N=block,
        NORM_BEFORE_GATE=norm_before_gate,
        IS_RMS_NORM=rms_norm,
        num_warps=min(max(block // 256, 1), 8),
    )
    if groups > 1:
        turn[(triton.cdiv(rows, 256), groups)](factors, rstd, rows, groups, 256)
