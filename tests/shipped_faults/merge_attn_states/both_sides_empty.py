"""expect: wrong_result in seen-01. Empty rows: where neither side has a key, exp(-inf + inf) is NaN."""

import triton
import triton.language as tl


@triton.jit
def merge(prefix_ptr, suffix_ptr, prefix_lse_ptr, suffix_lse_ptr, out_ptr, lse_ptr, tokens, dim, DIM: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    one = tl.load(prefix_lse_ptr + head * tokens + token)
    other = tl.load(suffix_lse_ptr + head * tokens + token)
    one = tl.where(one == float("inf"), -float("inf"), one)
    other = tl.where(other == float("inf"), -float("inf"), other)
    peak = tl.maximum(one, other)
    one, other = tl.exp(one - peak), tl.exp(other - peak)
    total = one + other
    tl.store(lse_ptr + head * tokens + token, tl.log(total) + peak)
    dims = tl.arange(0, DIM)
    at = (token * tl.num_programs(1) + head) * dim + dims
    prefix = tl.load(prefix_ptr + at, mask=dims < dim).to(tl.float32)
    suffix = tl.load(suffix_ptr + at, mask=dims < dim).to(tl.float32)
    merged = (prefix * one + suffix * other) / total
    tl.store(out_ptr + at, merged.to(out_ptr.dtype.element_ty), mask=dims < dim)


def merge_attn_states(prefix_out, suffix_out, prefix_lse, suffix_lse, out, out_lse):
    tokens, heads, dim = prefix_out.shape
    merge[(tokens, heads)](
        prefix_out, suffix_out, prefix_lse, suffix_lse, out, out_lse, tokens, dim, DIM=triton.next_power_of_2(dim)
    )
