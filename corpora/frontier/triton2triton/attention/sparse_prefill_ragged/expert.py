"""Sparse prefill with up to 64 query heads a program, and in parts of each list where tokens are few.

What the baseline wastes, and what is done instead:

- It gathers each row once for every 16 heads. On NVIDIA a program has up to 64 heads here, and wgmma in place of
  products of 16 rows.
- It masks every tile. Here only the last of a list has a mask.
- Few tokens leave most of a GPU empty. Here programs share a list, and a second kernel merges the parts
  (Flash-Decoding, Dao et al., 2023). The sink joins at the end.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
# Finite, so that an empty list does not become NaN.
LOWEST = tl.constexpr(-1e30)
ENOUGH_PROGRAMS = 608 if torch.version.hip else 264
MAX_PARTS = 16
TILES_PER_PART = 2


@triton.jit
def _walk(
    query,
    kv_ptr,
    indices_ptr,
    peak,
    total,
    acc,
    first,
    last,
    scale,
    MASKED: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    """The online softmax over entries first … last - 1, in base 2."""
    dims = tl.arange(0, DIM)
    for start in range(first, last, TILE):
        entries = start + tl.arange(0, TILE)
        inside = entries < last
        if MASKED:
            slots = tl.load(indices_ptr + entries, mask=inside, other=0).to(tl.int64)
            rows = tl.load(kv_ptr + (slots * DIM)[:, None] + dims[None, :], mask=inside[:, None], other=0.0)
        else:
            slots = tl.load(indices_ptr + entries).to(tl.int64)
            rows = tl.load(kv_ptr + (slots * DIM)[:, None] + dims[None, :])
        scores = tl.dot(query, rows.T)
        if MASKED:
            scores = tl.where(inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(rows.dtype), rows, acc * shrink[:, None])
        peak = new_peak
    return peak, total, acc


@triton.jit
def _attend_part(
    query_ptr,
    kv_ptr,
    indices_ptr,
    cu_indices_ptr,
    sinks_ptr,
    out_ptr,
    lse_ptr,
    scale,
    num_heads,
    HAS_SINKS: tl.constexpr,
    PARTS: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    """One part of a list. With one part `out` is final."""
    part = tl.program_id(0) % PARTS
    heads = tl.program_id(0) // PARTS * HEADS + tl.arange(0, HEADS)
    token = tl.program_id(1).to(tl.int64)
    stored = heads < num_heads
    rows = token * num_heads + heads
    dims = tl.arange(0, DIM)
    query = tl.load(query_ptr + rows[:, None] * DIM + dims[None, :], mask=stored[:, None], other=0.0)

    first = tl.load(cu_indices_ptr + token)
    last = tl.load(cu_indices_ptr + token + 1)
    length = tl.cdiv(tl.cdiv(last - first, PARTS), TILE) * TILE
    begin = first + part * length
    end = tl.minimum(begin + length, last)
    whole = begin + tl.maximum(end - begin, 0) // TILE * TILE
    peak = tl.full((HEADS,), LOWEST, tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, DIM), tl.float32)
    peak, total, acc = _walk(query, kv_ptr, indices_ptr, peak, total, acc, begin, whole, scale, False, TILE, DIM)
    peak, total, acc = _walk(query, kv_ptr, indices_ptr, peak, total, acc, whole, end, scale, True, TILE, DIM)

    share = tl.full((HEADS,), 1.0, tl.float32)
    if PARTS > 1:
        # A part without entries has total 0 and a log-sum-exp of minus infinity.
        tl.store(lse_ptr + rows * PARTS + part, peak + tl.log2(total), mask=stored)
    elif HAS_SINKS:
        sinks = tl.load(sinks_ptr + heads, mask=stored, other=0.0) * LOG2_E
        highest = tl.maximum(peak, sinks)
        share = tl.exp2(peak - highest)
        total = total * share + tl.exp2(sinks - highest)
    result = acc * (share / tl.where(total > 0, total, 1.0))[:, None]
    out_rows = out_ptr + (rows * PARTS + part)[:, None] * DIM + dims[None, :]
    tl.store(out_rows, result.to(out_ptr.dtype.element_ty), mask=stored[:, None])


@triton.jit
def _merge(
    partial_ptr,
    lse_ptr,
    sinks_ptr,
    out_ptr,
    num_heads,
    HAS_SINKS: tl.constexpr,
    PARTS: tl.constexpr,
    DIM: tl.constexpr,
):
    """Weighted mean of the parts of one head of one token."""
    row = tl.program_id(0).to(tl.int64)
    lse = tl.load(lse_ptr + row * PARTS + tl.arange(0, PARTS))
    peak = tl.maximum(tl.max(lse, axis=0), LOWEST)
    sink = LOWEST
    if HAS_SINKS:
        sink = tl.load(sinks_ptr + row % num_heads) * LOG2_E
        peak = tl.maximum(peak, sink)
    total = tl.sum(tl.exp2(lse - peak), axis=0)
    if HAS_SINKS:
        total += tl.exp2(sink - peak)
    share = 1.0 / tl.where(total > 0, total, 1.0)
    dims = tl.arange(0, DIM)
    merged = tl.zeros((DIM,), tl.float32)
    for part in range(PARTS):
        place = row * PARTS + part
        weight = tl.exp2(tl.load(lse_ptr + place) - peak) * share
        merged += tl.load(partial_ptr + place * DIM + dims) * weight
    tl.store(out_ptr + row * DIM + dims, merged.to(out_ptr.dtype.element_ty))


def _shape(num_heads: int, head_dim: int) -> tuple[int, int, int, int]:
    """Return heads and entries of a tile, warps and stages.

    On NVIDIA 64 heads of 512 values take 128 registers a thread of 8 warps, and queries with two tiles of 64 rows 192
    of 227 KiB. AMD has 64 KiB in all.
    """
    if torch.version.hip:
        return 16, 16 if head_dim == 512 else 32, 4, 2
    if num_heads <= 32:
        return 16 if num_heads <= 16 else 32, 32, 4, 3
    return 64, 64, 8, 2


def sparse_prefill_ragged(query, kv, indices, cu_indices, sinks, sm_scale, out):
    num_tokens, num_heads, head_dim = query.shape
    heads, tile, num_warps, stages = _shape(num_heads, head_dim)
    head_tiles = triton.cdiv(num_heads, heads)
    most = indices.numel() // num_tokens
    wanted = triton.cdiv(ENOUGH_PROGRAMS, num_tokens * head_tiles)
    parts = triton.next_power_of_2(max(1, min(wanted, triton.cdiv(most, TILES_PER_PART * tile), MAX_PARTS)))
    partial, lse = out, out
    if parts > 1:
        partial = torch.empty((num_tokens, num_heads, parts, head_dim), dtype=torch.float32, device=out.device)
        lse = torch.empty((num_tokens, num_heads, parts), dtype=torch.float32, device=out.device)
    sizes = {"HAS_SINKS": sinks is not None, "PARTS": parts, "DIM": head_dim}
    _attend_part[(head_tiles * parts, num_tokens)](
        query,
        kv,
        indices,
        cu_indices,
        sinks,
        partial,
        lse,
        sm_scale * LOG2_E.value,
        num_heads,
        HEADS=heads,
        TILE=tile,
        num_warps=num_warps,
        num_stages=stages,
        **sizes,
    )
    if parts > 1:
        _merge[(num_tokens * num_heads,)](partial, lse, sinks, out, num_heads, **sizes)
