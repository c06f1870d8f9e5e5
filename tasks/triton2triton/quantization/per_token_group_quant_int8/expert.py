"""Group-wise int8 quantization of a tile of groups per program, so that every warp moves whole cache lines."""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096
# Added and taken away again, 1.5 * 2**23 rounds a float32 below 2**22 to an integer, ties to even, on every device.
TIES_TO_EVEN = tl.constexpr(12582912.0)


@triton.jit
def _quantize_tile(
    x_ptr,
    q_ptr,
    scales_ptr,
    x_stride,
    groups_of_token,
    n_groups,
    group_size,
    eps,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    groups = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    lanes = tl.arange(0, WIDTH)
    offsets = groups[:, None] * group_size + lanes[None, :]
    tokens = groups // groups_of_token
    x_offsets = (tokens * x_stride + groups % groups_of_token * group_size)[:, None] + lanes[None, :]
    inside = (groups < n_groups)[:, None] & (lanes < group_size)[None, :]
    x = tl.load(x_ptr + x_offsets, mask=inside, other=0.0).to(tl.float32)
    magnitude = tl.maximum(tl.max(tl.abs(x), axis=1), eps)
    # One division per group; |x| <= magnitude, so a code never leaves [-127, 127].
    codes = (x * (127.0 / magnitude)[:, None] + TIES_TO_EVEN) - TIES_TO_EVEN
    tl.store(q_ptr + offsets, codes.to(tl.int8), mask=inside)
    tl.store(scales_ptr + groups, magnitude / 127.0, mask=groups < n_groups)


def per_token_group_quant_int8(x, eps, q, scales):
    n_groups = scales.numel()
    group_size = x.shape[1] // scales.shape[1]
    width = triton.next_power_of_2(group_size)
    groups = min(max(1, TILE_ELEMENTS // width), triton.next_power_of_2(n_groups))
    num_warps = min(16, max(1, width * groups // 1024))
    _quantize_tile[(triton.cdiv(n_groups, groups),)](
        x,
        q,
        scales,
        x.stride(0),
        scales.shape[1],
        n_groups,
        group_size,
        eps,
        GROUPS=groups,
        WIDTH=width,
        num_warps=num_warps,
    )
