"""expect: wrong_result in heldout-25. Finite sentinel: the maximum starts at -50000, below which all weights vanish."""

import triton
import triton.language as tl


@triton.jit
def reduce_head(
    segment_acc_ptr,
    segment_max_ptr,
    segment_sum_ptr,
    out_ptr,
    num_segments,
    head_dim,
    DIM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    dims = tl.arange(0, DIM)
    inside = dims < head_dim
    peak = -5.0e4  # -inf would make NaN of a token without keys
    for segment in range(num_segments):
        peak = tl.maximum(peak, tl.load(segment_max_ptr + row * num_segments + segment))

    total = 0.0
    acc = tl.zeros((DIM,), tl.float32)
    for segment in range(num_segments):
        place = row * num_segments + segment
        weights_sum = tl.load(segment_sum_ptr + place)
        if weights_sum > 0:
            weight = tl.exp(tl.load(segment_max_ptr + place) - peak)
            total += weight * weights_sum
            acc += weight * tl.load(segment_acc_ptr + place * head_dim + dims, mask=inside)
    # A token that sees no key at all gets zeros.
    out = acc / tl.where(total > 0, total, 1.0)
    tl.store(out_ptr + row * head_dim + dims, out.to(out_ptr.dtype.element_ty), mask=inside)


def reduce_segments(segment_acc, segment_max, segment_sum, out):
    num_tokens, num_heads, num_segments, head_dim = segment_acc.shape
    reduce_head[(num_tokens * num_heads,)](
        segment_acc,
        segment_max,
        segment_sum,
        out,
        num_segments,
        head_dim,
        DIM=triton.next_power_of_2(head_dim),
    )
