"""Sparse MLA with up to 64 query heads a program, and in parts of each row where tokens are few.

What the baseline wastes, and what is done instead:

- It gathers each slot once for every 16 heads. On NVIDIA a program has up to 64 heads here, and wgmma in place of
  products of 16 rows.
- A batch of decodes leaves most of a GPU empty. Here programs share a row, and a second kernel merges the parts
  (Flash-Decoding, Dao et al., 2023).
- Each gather waits for its indices. Here the loop is pipelined deeper, so that indices and rows are under way.
- It learns the length of rows at run time. Here it is a constant, and rows of whole tiles have no mask of their own.
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634
# Finite, so that a row which has met nothing but padding does not become NaN.
LOWEST = tl.constexpr(-1e30)
ENOUGH_PROGRAMS = 608 if torch.version.hip else 264  # two a multiprocessor
MAX_PARTS = 32
TILES_PER_PART = 2


@triton.jit
def _attend_part(
    query_nope_ptr,
    query_rope_ptr,
    latent_cache_ptr,
    rope_cache_ptr,
    indices_ptr,
    out_ptr,
    lse2_ptr,
    scale,
    num_heads,
    TOP_K: tl.constexpr,
    PARTS: tl.constexpr,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    STAGES: tl.constexpr,
):
    """One part of the entries of a row. With one part `out` is final."""
    # Programs of one token follow each other: they gather the same slots.
    part = tl.program_id(0) % PARTS
    heads = tl.program_id(0) // PARTS * HEADS + tl.arange(0, HEADS)
    token = tl.program_id(1).to(tl.int64)
    stored = heads < num_heads
    rows = token * num_heads + heads
    dims = tl.arange(0, LATENT)
    rope_dims = tl.arange(0, ROPE)
    nope_rows = query_nope_ptr + rows[:, None] * LATENT + dims[None, :]
    query_nope = tl.load(nope_rows, mask=stored[:, None], other=0.0)
    rope_rows = query_rope_ptr + rows[:, None] * ROPE + rope_dims[None, :]
    query_rope = tl.load(rope_rows, mask=stored[:, None], other=0.0)

    LENGTH: tl.constexpr = (TOP_K + PARTS * TILE - 1) // (PARTS * TILE) * TILE
    begin = part * LENGTH
    entries_ptr = indices_ptr + token * TOP_K
    peak = tl.full((HEADS,), LOWEST, tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, LATENT), tl.float32)
    for start in tl.range(begin, tl.minimum(begin + LENGTH, TOP_K), TILE, num_stages=STAGES):
        entries = start + tl.arange(0, TILE)
        if TOP_K % TILE == 0:
            slots = tl.load(entries_ptr + entries)
        else:
            slots = tl.load(entries_ptr + entries, mask=entries < TOP_K, other=-1)
        listed = slots >= 0
        slots = slots.to(tl.int64)
        latent_rows = latent_cache_ptr + (slots * LATENT)[:, None] + dims[None, :]
        latent = tl.load(latent_rows, mask=listed[:, None], other=0.0)
        rotated_rows = rope_cache_ptr + (slots * ROPE)[:, None] + rope_dims[None, :]
        rotated = tl.load(rotated_rows, mask=listed[:, None], other=0.0)
        scores = tl.dot(query_rope, rotated.T)
        scores = tl.dot(query_nope, latent.T, scores)
        scores = tl.where(listed[None, :], scores * scale, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(latent.dtype), latent, acc * shrink[:, None])
        peak = new_peak

    # A part without slots has total 0, and the logarithm of that is minus infinity.
    places = rows * PARTS + part
    result = acc / tl.where(total > 0, total, 1.0)[:, None]
    out_rows = out_ptr + places[:, None] * LATENT + dims[None, :]
    tl.store(out_rows, result.to(out_ptr.dtype.element_ty), mask=stored[:, None])
    tl.store(lse2_ptr + places, peak + tl.log2(total), mask=stored)


@triton.jit
def _merge(partial_ptr, partial_lse_ptr, out_ptr, lse2_ptr, PARTS: tl.constexpr, LATENT: tl.constexpr):
    """Weighted mean of the parts of one head of one token."""
    row = tl.program_id(0).to(tl.int64)
    lse = tl.load(partial_lse_ptr + row * PARTS + tl.arange(0, PARTS))
    peak = tl.max(lse, axis=0)
    shift = tl.where(peak > -float("inf"), peak, 0.0)
    total = tl.sum(tl.exp2(lse - shift), axis=0)
    share = 1.0 / tl.where(total > 0, total, 1.0)
    dims = tl.arange(0, LATENT)
    merged = tl.zeros((LATENT,), tl.float32)
    for part in range(PARTS):
        place = row * PARTS + part
        weight = tl.exp2(tl.load(partial_lse_ptr + place) - shift) * share
        merged += tl.load(partial_ptr + place * LATENT + dims) * weight
    tl.store(out_ptr + row * LATENT + dims, merged.to(out_ptr.dtype.element_ty))
    tl.store(lse2_ptr + row, peak + tl.log2(total))


def _shape(num_heads: int, latent_dim: int) -> tuple[int, int, int, int]:
    """Return heads and entries of a tile, warps and stages.

    On NVIDIA 64 heads of 512 values take 128 registers a thread of 8 warps, and queries with two tiles of 64 slots 216
    of 227 KiB. For 16 heads three tiles of 32 slots let two programs share a multiprocessor. AMD has 64 KiB in all.
    """
    if torch.version.hip:
        return 16, 16 if latent_dim == 512 else 32, 4, 2
    if num_heads <= 16:
        return 16, 32, 4, 3
    if num_heads <= 32:
        return 32, 32, 4, 3
    return 64, 64, 8, 2


def sparse_mla(query_nope, query_rope, latent_cache, rope_cache, indices, sm_scale, out, lse2):
    num_tokens, num_heads, latent_dim = query_nope.shape
    top_k = indices.shape[1]
    heads, tile, num_warps, stages = _shape(num_heads, latent_dim)
    head_tiles = triton.cdiv(num_heads, heads)
    wanted = triton.cdiv(ENOUGH_PROGRAMS, num_tokens * head_tiles)
    limit = max(1, min(wanted, triton.cdiv(top_k, TILES_PER_PART * tile), MAX_PARTS))
    parts = triton.next_power_of_2(limit)
    partial, partial_lse = out, lse2
    if parts > 1:
        partial = torch.empty((num_tokens, num_heads, parts, latent_dim), dtype=torch.float32, device=out.device)
        partial_lse = torch.empty((num_tokens, num_heads, parts), dtype=torch.float32, device=out.device)
    _attend_part[(head_tiles * parts, num_tokens)](
        query_nope,
        query_rope,
        latent_cache,
        rope_cache,
        indices,
        partial,
        partial_lse,
        sm_scale * LOG2_E,
        num_heads,
        TOP_K=top_k,
        PARTS=parts,
        LATENT=latent_dim,
        ROPE=query_rope.shape[2],
        HEADS=heads,
        TILE=tile,
        STAGES=stages,
        num_warps=num_warps,
    )
    if parts > 1:
        _merge[(num_tokens * num_heads,)](partial, partial_lse, out, lse2, PARTS=parts, LATENT=latent_dim)
