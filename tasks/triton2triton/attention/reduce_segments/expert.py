"""Reduction over attention segments in one pass: all maxima and sums of a head at once, accumulators in wide tiles."""

import triton
import triton.language as tl

TILE_ELEMENTS = 2048


@triton.jit
def _reduce(
    segment_acc_ptr,
    segment_max_ptr,
    segment_sum_ptr,
    out_ptr,
    num_segments,
    head_dim,
    SEGMENTS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    dims = tl.arange(0, DIM)
    everything = tl.arange(0, SEGMENTS)
    places = row * num_segments + everything
    maxima = tl.load(segment_max_ptr + places, mask=everything < num_segments, other=-float("inf"))
    sums = tl.load(segment_sum_ptr + places, mask=everything < num_segments, other=0.0)
    peak = tl.max(maxima, axis=0)
    peak = tl.where(peak == -float("inf"), 0.0, peak)
    total = tl.sum(tl.exp(maxima - peak) * sums, axis=0)

    acc = tl.zeros((TILE, DIM), tl.float32)
    for start in range(0, num_segments, TILE):
        segments = start + tl.arange(0, TILE)
        inside = segments < num_segments
        own = row * num_segments + segments
        weights = tl.exp(tl.load(segment_max_ptr + own, mask=inside, other=-float("inf")) - peak)
        # Empty segments are not even read.
        mask = (weights > 0)[:, None] & (dims < head_dim)[None, :]
        acc += weights[:, None] * tl.load(
            segment_acc_ptr + own[:, None] * head_dim + dims[None, :], mask=mask, other=0.0
        )
    out = tl.sum(acc, axis=0) / tl.where(total > 0, total, 1.0)
    tl.store(out_ptr + row * head_dim + dims, out.to(out_ptr.dtype.element_ty), mask=dims < head_dim)


def reduce_segments(segment_acc, segment_max, segment_sum, out):
    num_tokens, num_heads, num_segments, head_dim = segment_acc.shape
    dim = triton.next_power_of_2(head_dim)
    segments = triton.next_power_of_2(num_segments)
    _reduce[(num_tokens * num_heads,)](
        segment_acc,
        segment_max,
        segment_sum,
        out,
        num_segments,
        head_dim,
        SEGMENTS=segments,
        TILE=max(1, min(segments, TILE_ELEMENTS // dim)),
        DIM=dim,
        num_warps=2 if dim <= 128 else 4,
    )
