"""Cumulative sums of gates with all heads of a token side by side, so that rows are read and written whole."""

import triton
import triton.language as tl

TILE_ELEMENTS = 4096


@triton.jit
def _chunk_sums(
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    sums_ptr,
    num_heads,
    scale,
    CHUNK: tl.constexpr,
    HEADS: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """One chunk and up to HEADS heads."""
    chunk = tl.program_id(0)
    seq = tl.load(chunk_indices_ptr + chunk * 2)
    if seq >= 0:
        begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + chunk * 2 + 1) * CHUNK
        length = tl.load(cu_seqlens_ptr + seq + 1) - begin
        rows = tl.arange(0, CHUNK)
        heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
        offsets = (begin.to(tl.int64) + rows)[:, None] * num_heads + heads[None, :]
        inside = (rows < length)[:, None] & (heads < num_heads)[None, :]
        g = tl.load(g_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        tl.store(sums_ptr + offsets, tl.cumsum(g, axis=0, reverse=REVERSE) * scale, mask=inside)


def fla_cumsum_scalar(g, cu_seqlens, chunk_indices, chunk_size, reverse, scale, sums):
    num_heads = g.shape[1]
    heads = min(triton.next_power_of_2(num_heads), TILE_ELEMENTS // chunk_size)
    _chunk_sums[(chunk_indices.shape[0], triton.cdiv(num_heads, heads))](
        g,
        cu_seqlens,
        chunk_indices,
        sums,
        num_heads,
        scale,
        CHUNK=chunk_size,
        HEADS=heads,
        REVERSE=reverse,
        num_warps=max(1, min(4, chunk_size * heads // 512)),
    )
