"""expect: wrong_result in heldout-23. Hard-coded size: one block of at most 8192 values of a stream."""

import triton
import triton.language as tl


@triton.jit
def combine_streams(x_ptr, residual_ptr, post_ptr, comb_ptr, out_ptr, hidden, token_stride, BLOCK: tl.constexpr):
    token = (tl.program_id(0) // 4).to(tl.int64)
    new = tl.program_id(0) % 4
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < hidden
    x = tl.load(x_ptr + token * token_stride + columns, mask=inside, other=0.0).to(tl.float32)
    acc = tl.load(post_ptr + token * 4 + new) * x
    for old in range(4):
        residual = tl.load(residual_ptr + (token * 4 + old) * hidden + columns, mask=inside, other=0.0)
        acc += tl.load(comb_ptr + token * 16 + old * 4 + new) * residual.to(tl.float32)
    tl.store(out_ptr + (token * 4 + new) * hidden + columns, acc.to(out_ptr.dtype.element_ty), mask=inside)


def mhc_post(x, residual, post, comb, out):
    num_tokens, hidden = x.shape
    combine_streams[(num_tokens * 4, min(8, triton.cdiv(hidden, 1024)))](
        x, residual, post, comb, out, hidden, x.stride(0), BLOCK=1024
    )
