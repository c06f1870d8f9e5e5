"""Cumulative sums of gate vectors in a chunk: one program per chunk and head keeps a running sum of every channel."""

import triton
import triton.language as tl


@triton.jit
def running_sums(
    g_ptr,
    cu_seqlens_ptr,
    chunk_indices_ptr,
    sums_ptr,
    token_stride,
    num_heads,
    head_dim,
    scale,
    CHUNK: tl.constexpr,
    CHANNELS: tl.constexpr,
    REVERSE: tl.constexpr,
):
    chunk = (tl.program_id(0) // num_heads).to(tl.int64)
    head = tl.program_id(0) % num_heads
    seq = tl.load(chunk_indices_ptr + chunk * 2)
    if seq >= 0:
        begin = tl.load(cu_seqlens_ptr + seq) + tl.load(chunk_indices_ptr + chunk * 2 + 1) * CHUNK
        length = tl.minimum(tl.load(cu_seqlens_ptr + seq + 1) - begin, CHUNK)
        channels = tl.arange(0, CHANNELS)
        inside = channels < head_dim
        total = tl.zeros((CHANNELS,), tl.float32)
        for step in range(length):
            token = begin.to(tl.int64) + step
            if REVERSE:
                token = begin.to(tl.int64) + length - 1 - step
            g = tl.load(g_ptr + token * token_stride + head * head_dim + channels, mask=inside, other=0.0)
            total += g.to(tl.float32)
            target = sums_ptr + (token * num_heads + head) * head_dim + channels
            tl.store(target, total * scale, mask=inside)


def fla_cumsum_vector(g, cu_seqlens, chunk_indices, chunk_size, reverse, scale, sums):
    _, num_heads, head_dim = g.shape
    running_sums[(chunk_indices.shape[0] * num_heads,)](
        g,
        cu_seqlens,
        chunk_indices,
        sums,
        g.stride(0),
        num_heads,
        head_dim,
        scale,
        CHUNK=chunk_size,
        CHANNELS=triton.next_power_of_2(head_dim),
        REVERSE=reverse,
    )
