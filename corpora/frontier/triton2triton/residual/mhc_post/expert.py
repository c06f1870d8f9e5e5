"""mHC after a layer: a program reads 1024 values of all streams of a token once and writes all four new streams."""

import triton
import triton.language as tl


@triton.jit
def _combine(x_ptr, residual_ptr, post_ptr, comb_ptr, out_ptr, hidden, token_stride, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < hidden
    old_ptrs = residual_ptr + token * 4 * hidden + columns
    old_0 = tl.load(old_ptrs, mask=inside, other=0.0).to(tl.float32)
    old_1 = tl.load(old_ptrs + hidden, mask=inside, other=0.0).to(tl.float32)
    old_2 = tl.load(old_ptrs + 2 * hidden, mask=inside, other=0.0).to(tl.float32)
    old_3 = tl.load(old_ptrs + 3 * hidden, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + token * token_stride + columns, mask=inside, other=0.0).to(tl.float32)
    comb_ptr += token * 16
    for new in tl.static_range(4):
        out = tl.load(post_ptr + token * 4 + new) * x
        out += tl.load(comb_ptr + new) * old_0
        out += tl.load(comb_ptr + 4 + new) * old_1
        out += tl.load(comb_ptr + 8 + new) * old_2
        out += tl.load(comb_ptr + 12 + new) * old_3
        tl.store(out_ptr + (token * 4 + new) * hidden + columns, out.to(out_ptr.dtype.element_ty), mask=inside)


def mhc_post(x, residual, post, comb, out):
    num_tokens, hidden = x.shape
    block = min(1024, triton.next_power_of_2(hidden))
    _combine[(num_tokens, triton.cdiv(hidden, block))](
        x, residual, post, comb, out, hidden, x.stride(0), BLOCK=block, num_warps=4
    )
