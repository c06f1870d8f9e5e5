"""Correction of one rank's attention output by tiles of many rows.

The baseline has one program a row: it moves 128 values with four warps, and its log-sum-exps lie num_rows apart. Here
a tile's rows are neighbours, so that each rank's log-sum-exps are read as whole cache lines, and a thread has several
loads of 16 bytes in flight.
"""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def _correct_rows(
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
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    real = rows < num_rows
    dims = tl.arange(0, DIM)
    inside = real[:, None] & (dims < head_dim)[None, :]
    places = rows[:, None] * head_dim + dims[None, :]
    attn_out = tl.load(attn_out_ptr + places, mask=inside, other=0.0)

    lowest = -float("inf")
    ranks = tl.arange(0, RANKS)
    lse_mask = (ranks < num_ranks)[:, None] & real[None, :]
    lses = tl.load(lses_ptr + ranks.to(tl.int64)[:, None] * num_rows + rows[None, :], mask=lse_mask, other=lowest)
    # Infinity and NaN say that a rank had no keys.
    lses = tl.where(lses < float("inf"), lses, lowest)
    own = tl.max(tl.where((ranks == rank)[:, None], lses, lowest), axis=0)
    # Exponentials are those of base 2, which a GPU has.
    factor: tl.constexpr = 1.0 if BASE2 else 1.4426950408889634
    peak = tl.max(lses, axis=0)
    peak = tl.where(peak == lowest, 0.0, peak)
    total = tl.log2(tl.sum(tl.exp2((lses - peak[None, :]) * factor), axis=0)) / factor + peak
    share = tl.where(own == lowest, 0.0, tl.exp2((own - total) * factor))
    tl.store(lse_ptr + rows, total, mask=real)
    tl.store(out_ptr + places, (attn_out.to(tl.float32) * share[:, None]).to(out_ptr.dtype.element_ty), mask=inside)


def correct_attn_cp_out(attn_out, lses, rank, base2, out, lse):
    num_tokens, num_heads, head_dim = attn_out.shape
    num_ranks = lses.shape[0]
    num_rows = num_tokens * num_heads
    dim = triton.next_power_of_2(head_dim)
    rows = max(1, TILE_ELEMENTS // dim)
    _correct_rows[(triton.cdiv(num_rows, rows),)](
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
        ROWS=rows,
        DIM=dim,
    )
