"""Cumulative sums of gates within a chunk: one program per chunk and 16 heads."""

import triton
import triton.language as tl


@triton.jit
def chunk_sums(
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
    chunk = tl.program_id(0)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    seq = tl.load(chunk_indices_ptr + chunk * 2)
    if seq >= 0:
        begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + chunk * 2 + 1) * CHUNK
        tokens = begin.to(tl.int64) + tl.arange(0, CHUNK)
        inside = (tokens < tl.load(cu_seqlens_ptr + seq + 1))[:, None] & (heads < num_heads)[None, :]
        offsets = tokens[:, None] * num_heads + heads[None, :]
        g = tl.load(g_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        sums = tl.cumsum(g, axis=0)
        if REVERSE:
            sums = tl.sum(g, axis=0)[None, :] - sums + g
        tl.store(sums_ptr + offsets, sums * scale, mask=inside)


def fla_cumsum_scalar(g, cu_seqlens, chunk_indices, chunk_size, reverse, scale, sums):
    num_heads = g.shape[1]
    chunk_sums[(chunk_indices.shape[0], triton.cdiv(num_heads, 16))](
        g, cu_seqlens, chunk_indices, sums, num_heads, scale, CHUNK=chunk_size, HEADS=16, REVERSE=reverse
    )
