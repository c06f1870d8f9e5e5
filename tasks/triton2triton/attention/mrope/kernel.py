"""Multimodal rotary embedding in place: one program per token and head, first for queries and then for keys."""

import triton
import triton.language as tl


@triton.jit
def rotate_head(
    x_ptr,
    cos_ptr,
    sin_ptr,
    section_t,
    section_h,
    num_tokens,
    token_stride,
    head_dim,
    half,
    INTERLEAVED: tl.constexpr,
    PAIRS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    pairs = tl.arange(0, PAIRS)
    inside = pairs < half
    if INTERLEAVED:
        section_w = half - section_t - section_h
        height = (pairs % 3 == 1) & (pairs // 3 < section_h)
        width = (pairs % 3 == 2) & (pairs // 3 < section_w)
        axis = tl.where(height, 1, tl.where(width, 2, 0))
    else:
        axis = tl.where(pairs < section_t, 0, tl.where(pairs < section_t + section_h, 1, 2))
    angles = (axis * num_tokens + token) * half + pairs
    cos = tl.load(cos_ptr + angles, mask=inside).to(tl.float32)
    sin = tl.load(sin_ptr + angles, mask=inside).to(tl.float32)

    first = x_ptr + token * token_stride + tl.program_id(1) * head_dim + pairs
    second = first + half
    x = tl.load(first, mask=inside).to(tl.float32)
    y = tl.load(second, mask=inside).to(tl.float32)
    tl.store(second, (y * cos + x * sin).to(x_ptr.dtype.element_ty), mask=inside)
    tl.store(first, (x * cos - y * sin).to(x_ptr.dtype.element_ty), mask=inside)


def mrope(query, key, cos, sin, section_t, section_h, interleaved):
    num_tokens, half = cos.shape[1:]
    for x in (query, key):
        rotate_head[(num_tokens, x.shape[1])](
            x,
            cos,
            sin,
            section_t,
            section_h,
            num_tokens,
            x.stride(0),
            x.shape[2],
            half,
            INTERLEAVED=interleaved,
            PAIRS=triton.next_power_of_2(half),
        )
