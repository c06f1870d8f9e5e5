"""Expansion of values to tokens: one program per request, block by block."""

import triton
import triton.language as tl


@triton.jit
def expand_request(x_ptr, cu_seqlens_ptr, replace_from, replace_to, expanded_ptr, BLOCK: tl.constexpr):
    req = tl.program_id(0)
    x = tl.load(x_ptr + req)
    x = tl.where(x == replace_from, replace_to, x).to(x_ptr.dtype.element_ty)
    begin = tl.load(cu_seqlens_ptr + req)
    end = tl.load(cu_seqlens_ptr + req + 1)
    for start in range(begin, end, BLOCK):
        places = start + tl.arange(0, BLOCK)
        tl.store(expanded_ptr + places, x, mask=places < end)


def expand(x, cu_seqlens, replace_from, replace_to, expanded):
    expand_request[(x.numel(),)](x, cu_seqlens, replace_from, replace_to, expanded, BLOCK=32)
