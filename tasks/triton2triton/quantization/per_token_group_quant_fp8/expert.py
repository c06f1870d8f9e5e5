"""Group-wise fp8 quantization in tiles of 2048 values that cross tokens, for four warps.

A thread of the baseline has eight values, one 16-byte load in half precision; here it has two such loads in flight (or
one instead of half a one where a warp has 64 lanes). Groups are counted over all tokens, so that only the last tile has
empty places: with 57 groups in a token, the baseline fills 57 of 64. Codes and scales are dense in that count. One
reciprocal for a group replaces a division for each value.
"""

import torch
import triton
import triton.language as tl

TILE_ELEMENTS = 2048


@triton.jit
def _quantize_groups(
    x_ptr,
    q_ptr,
    scales_ptr,
    token_stride,
    all_groups,
    eps,
    N_GROUPS: tl.constexpr,
    GROUP_SIZE: tl.constexpr,
    LARGEST: tl.constexpr,
    GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Codes and scales of GROUPS neighbouring groups."""
    first = tl.program_id(0).to(tl.int64) * GROUPS
    groups = first + tl.arange(0, GROUPS)
    real = groups < all_groups
    lanes = tl.arange(0, BLOCK)
    inside = real[:, None] & (lanes < GROUP_SIZE)[None, :]
    # Tokens and groups in them, by 32-bit divisions of small numbers.
    steps = (first % N_GROUPS).to(tl.int32) + tl.arange(0, GROUPS)
    tokens = first // N_GROUPS + steps // N_GROUPS
    starts = tokens * token_stride + steps % N_GROUPS * GROUP_SIZE
    x = tl.load(x_ptr + starts[:, None] + lanes[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x), axis=1), eps)
    # A product may come out a last bit above LARGEST, which has no code.
    codes = tl.minimum(tl.maximum(x * (LARGEST / largest)[:, None], -LARGEST), LARGEST)
    places = (groups * GROUP_SIZE)[:, None] + lanes[None, :]
    tl.store(q_ptr + places, codes.to(q_ptr.dtype.element_ty), mask=inside)
    tl.store(scales_ptr + groups, largest / LARGEST, mask=real)


def per_token_group_quant_fp8(x, eps, q, scales):
    tokens, hidden = x.shape
    n_groups = scales.shape[1]
    group_size = hidden // n_groups
    block = triton.next_power_of_2(group_size)
    groups = max(1, TILE_ELEMENTS // block)
    _quantize_groups[(triton.cdiv(tokens * n_groups, groups),)](
        x,
        q,
        scales,
        x.stride(0),
        tokens * n_groups,
        eps,
        N_GROUPS=n_groups,
        GROUP_SIZE=group_size,
        LARGEST=torch.finfo(q.dtype).max,
        GROUPS=groups,
        BLOCK=block,
        num_warps=4 if block <= TILE_ELEMENTS else 8,
    )
