"""expect: wrong_result in heldout-12. Rounding half up: codes are rounded by hand, ties away from zero, where the text says to even."""

import torch
import triton
import triton.language as tl

TILE_ELEMENTS = 1024


@triton.jit
def quantize_groups(
    x_ptr,
    q_ptr,
    scales_ptr,
    token_stride,
    hidden,
    n_groups,
    group_size,
    eps,
    LARGEST: tl.constexpr,
    GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    groups = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    lanes = tl.arange(0, BLOCK)
    inside = (groups < n_groups)[:, None] & (lanes < group_size)[None, :]
    columns = groups[:, None] * group_size + lanes[None, :]
    x = tl.load(x_ptr + token * token_stride + columns, mask=inside, other=0.0).to(tl.float32)
    scales = tl.maximum(tl.max(tl.abs(x), axis=1), eps) / LARGEST
    # A quotient may come out a last bit above LARGEST, which has no code.
    codes = tl.minimum(tl.maximum(x / scales[:, None], -LARGEST), LARGEST)
    codes = ((codes.to(tl.int32, bitcast=True) + 0x80000) & -0x100000).to(tl.float32, bitcast=True)
    tl.store(q_ptr + token * hidden + columns, codes.to(q_ptr.dtype.element_ty), mask=inside)
    tl.store(scales_ptr + token * n_groups + groups, scales, mask=groups < n_groups)


def per_token_group_quant_fp8(x, eps, q, scales):
    tokens, hidden = x.shape
    n_groups = scales.shape[1]
    group_size = hidden // n_groups
    block = triton.next_power_of_2(group_size)
    groups = max(1, min(TILE_ELEMENTS // block, triton.next_power_of_2(n_groups)))
    quantize_groups[(tokens, triton.cdiv(n_groups, groups))](
        x,
        q,
        scales,
        x.stride(0),
        hidden,
        n_groups,
        group_size,
        eps,
        LARGEST=torch.finfo(q.dtype).max,
        GROUPS=groups,
        BLOCK=block,
    )
