"""expect: wrong_result in heldout-14. Size limit: one tile of 64 heads a token."""

import triton
import triton.language as tl


@triton.jit
def merge_head(
    prefix_out_ptr,
    suffix_out_ptr,
    prefix_lse_ptr,
    suffix_lse_ptr,
    out_ptr,
    out_lse_ptr,
    num_tokens,
    head_dim,
    DIM: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    if head >= 64:
        return
    infinity = float("inf")
    prefix_lse = tl.load(prefix_lse_ptr + head * num_tokens + token)
    suffix_lse = tl.load(suffix_lse_ptr + head * num_tokens + token)
    prefix_lse = tl.where(prefix_lse == infinity, -infinity, prefix_lse)
    suffix_lse = tl.where(suffix_lse == infinity, -infinity, suffix_lse)

    peak = tl.maximum(prefix_lse, suffix_lse)
    # Where both sides are empty the weights are 0, not exp(-inf + inf).
    prefix_weight = tl.where(prefix_lse == -infinity, 0.0, tl.exp(prefix_lse - peak))
    suffix_weight = tl.where(suffix_lse == -infinity, 0.0, tl.exp(suffix_lse - peak))
    total = prefix_weight + suffix_weight
    tl.store(out_lse_ptr + head * num_tokens + token, tl.log(total) + peak)

    dims = tl.arange(0, DIM)
    inside = dims < head_dim
    places = (token * tl.num_programs(1) + head) * head_dim + dims
    # What a side without keys holds may be NaN, and 0 times NaN is NaN.
    prefix = tl.load(prefix_out_ptr + places, mask=inside & (prefix_lse > -infinity), other=0.0).to(tl.float32)
    suffix = tl.load(suffix_out_ptr + places, mask=inside & (suffix_lse > -infinity), other=0.0).to(tl.float32)
    merged = prefix * prefix_weight + suffix * suffix_weight
    merged = tl.where(total > 0, merged / total, 0.0)
    tl.store(out_ptr + places, merged.to(out_ptr.dtype.element_ty), mask=inside)


def merge_attn_states(prefix_out, suffix_out, prefix_lse, suffix_lse, out, out_lse):
    num_tokens, num_heads, head_dim = prefix_out.shape
    merge_head[(num_tokens, num_heads)](
        prefix_out,
        suffix_out,
        prefix_lse,
        suffix_lse,
        out,
        out_lse,
        num_tokens,
        head_dim,
        DIM=triton.next_power_of_2(head_dim),
    )
