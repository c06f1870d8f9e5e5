"""Second stage of split decode attention: eight splits at a time, whose loads are on their way together.

The baseline takes in one split after the other, and its four warps load 128 values in words of 4 bytes. Here a step has
eight splits and one maximum, and a thread loads 16 bytes of each: one warp has all rows of 128 values, so that the sum
over splits needs no other lane. 32 such programs fit a multiprocessor of an H200, with 128 KiB on their way.
"""

import triton
import triton.language as tl

SPLITS = 8
VALUES_A_WARP = 128


@triton.jit
def _combine_blocks(
    partial_ptr,
    partial_lse_ptr,
    seq_lens_ptr,
    out_ptr,
    lse_ptr,
    num_splits,
    value_dim,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One sequence and head; splits past the last in use have no weight and are not loaded."""
    seq = tl.program_id(0).to(tl.int64)
    row = seq * tl.num_programs(1) + tl.program_id(1)
    length = tl.load(seq_lens_ptr + seq)
    used = tl.cdiv(length, tl.cdiv(length, num_splits))
    dims = tl.arange(0, DIM)
    peak = -float("inf")
    total = 0.0
    acc = tl.zeros((DIM,), tl.float32)
    for start in range(0, used, BLOCK):
        splits = start + tl.arange(0, BLOCK)
        places = row * num_splits + splits
        inside = (splits < used)[:, None] & (dims < value_dim)[None, :]
        split_lse = tl.load(partial_lse_ptr + places, mask=splits < used, other=-float("inf"))
        values = tl.load(partial_ptr + places[:, None] * value_dim + dims[None, :], mask=inside, other=0.0)
        new_peak = tl.maximum(peak, tl.max(split_lse, axis=0))
        shrink = tl.exp(peak - new_peak)
        weights = tl.exp(split_lse - new_peak)
        acc = acc * shrink + tl.sum(values * weights[:, None], axis=0)
        total = total * shrink + tl.sum(weights, axis=0)
        peak = new_peak
    tl.store(out_ptr + row * value_dim + dims, (acc / total).to(out_ptr.dtype.element_ty), mask=dims < value_dim)
    tl.store(lse_ptr + row, peak + tl.log(total))


def decode_attn_stage2(partial, partial_lse, seq_lens, out, lse):
    num_seqs, num_heads, num_splits, value_dim = partial.shape
    dim = triton.next_power_of_2(value_dim)
    _combine_blocks[(num_seqs, num_heads)](
        partial,
        partial_lse,
        seq_lens,
        out,
        lse,
        num_splits,
        value_dim,
        DIM=dim,
        BLOCK=SPLITS,
        num_warps=max(1, dim // VALUES_A_WARP),
    )
