"""expect: wrong_result. Memory of no meaning: partial results of empty splits are weighed with 0, and NaN remains NaN."""

import triton
import triton.language as tl


@triton.jit
def combine_splits(
    partial_ptr, partial_lse_ptr, seq_lens_ptr, out_ptr, lse_ptr, num_splits, value_dim, DIM: tl.constexpr
):
    seq = tl.program_id(0).to(tl.int64)
    row = seq * tl.num_programs(1) + tl.program_id(1)
    length = tl.load(seq_lens_ptr + seq)
    used = tl.cdiv(length, tl.cdiv(length, num_splits))
    dims = tl.arange(0, DIM)
    inside = dims < value_dim

    peak = -float("inf")
    total = 0.0
    acc = tl.zeros((DIM,), tl.float32)
    for split in range(num_splits):
        place = row * num_splits + split
        split_lse = tl.where(split < used, tl.load(partial_lse_ptr + place), -float("inf"))
        values = tl.load(partial_ptr + place * value_dim + dims, mask=inside)
        new_peak = tl.maximum(peak, split_lse)
        shrink = tl.exp(peak - new_peak)
        weight = tl.exp(split_lse - new_peak)
        acc = acc * shrink + values * weight
        total = total * shrink + weight
        peak = new_peak
    tl.store(out_ptr + row * value_dim + dims, (acc / total).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(lse_ptr + row, peak + tl.log(total))


def decode_attn_stage2(partial, partial_lse, seq_lens, out, lse):
    num_seqs, num_heads, num_splits, value_dim = partial.shape
    block = triton.next_power_of_2(value_dim)
    combine_splits[(num_seqs, num_heads)](partial, partial_lse, seq_lens, out, lse, num_splits, value_dim, DIM=block)
