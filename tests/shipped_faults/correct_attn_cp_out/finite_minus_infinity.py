"""expect: wrong_result in heldout-16. Values: everything below -10000 counts as minus infinity: ranks whose log-sum-exp are finite and that low are left out."""



import triton
import triton.language as tl


@triton.jit
def correct_head(
    attn_out_ptr,
    lses_ptr,
    out_ptr,
    lse_ptr,
    rank,
    num_ranks,
    num_rows,
    head_dim,
    BASE2: tl.constexpr,
    RANKS: tl.constexpr,
    DIM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lowest = -float("inf")
    ranks = tl.arange(0, RANKS)
    lses = tl.load(lses_ptr + ranks.to(tl.int64) * num_rows + row, mask=ranks < num_ranks, other=lowest)
    # False for +inf and for NaN, which say that a rank had no keys.
    lses = tl.where((lses < float("inf")) & (lses > -10000.0), lses, lowest)
    peak = tl.max(lses, axis=0)
    peak = tl.where(peak == lowest, 0.0, peak)
    if BASE2:
        total = tl.log2(tl.sum(tl.exp2(lses - peak), axis=0)) + peak
    else:
        total = tl.log(tl.sum(tl.exp(lses - peak), axis=0)) + peak
    tl.store(lse_ptr + row, total)

    own = tl.sum(tl.where(ranks == rank, tl.where(lses == lowest, 0.0, lses), 0.0), axis=0)
    absent = tl.sum(((ranks == rank) & (lses == lowest)).to(tl.int32), axis=0)
    if BASE2:
        share = tl.exp2(own - total)
    else:
        share = tl.exp(own - total)
    share = tl.where(absent > 0, 0.0, share)
    dims = tl.arange(0, DIM)
    places = row * head_dim + dims
    attn_out = tl.load(attn_out_ptr + places, mask=dims < head_dim).to(tl.float32)
    tl.store(out_ptr + places, (attn_out * share).to(out_ptr.dtype.element_ty), mask=dims < head_dim)


def correct_attn_cp_out(attn_out, lses, rank, base2, out, lse):
    num_tokens, num_heads, head_dim = attn_out.shape
    num_ranks = lses.shape[0]
    num_rows = num_tokens * num_heads
    correct_head[(num_rows,)](
        attn_out,
        lses,
        out,
        lse,
        rank,
        num_ranks,
        num_rows,
        head_dim,
        BASE2=base2,
        RANKS=triton.next_power_of_2(num_ranks),
        DIM=triton.next_power_of_2(head_dim),
    )
