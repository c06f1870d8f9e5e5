"""A scan with a combine function of its own, forwards or backwards, and a static loop over heads."""

import torch
import triton
import triton.language as tl


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def scan_kernel(g_ptr, cu_ptr, chunk_ptr, sums_ptr, H, scale, T: tl.constexpr, UNROLL: tl.constexpr, REVERSE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    seq, chunk = tl.load(chunk_ptr + 2 * pid), tl.load(chunk_ptr + 2 * pid + 1)
    if seq < 0:
        return
    begin, end = tl.load(cu_ptr + seq), tl.load(cu_ptr + seq + 1)
    tokens = begin + chunk * T + tl.arange(0, T)
    for u in tl.static_range(UNROLL):
        head = tl.program_id(1) * UNROLL + u
        mask = (tokens < end) & (head < H)
        at = tokens.to(tl.int64) * H + head
        g = tl.load(g_ptr + at, mask=mask, other=0).to(tl.float32)
        total = tl.associative_scan(g, axis=0, combine_fn=plus, reverse=REVERSE)
        tl.store(sums_ptr + at, total * scale, mask=mask)


def fla_cumsum_scalar(g, cu_seqlens, chunk_indices, chunk_size, reverse, scale, sums):
    _, H = g.shape
    grid = (chunk_indices.size(0), triton.cdiv(H, 4))
    scan_kernel[grid](g, cu_seqlens, chunk_indices, sums, H, scale, T=chunk_size, UNROLL=4, REVERSE=reverse, num_ctas=1)
