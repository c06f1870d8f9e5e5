"""Absorbed MLA decode from fp8 in parts of each sequence, merged by a second kernel (Flash-Decoding, Dao et al., 2023).

What the baseline wastes, and what is done instead:

- Few sequences leave most of a GPU empty, and a long one is waited for. Here programs share the tokens of a sequence.
- It reads and widens the cache once for every 16 heads. On NVIDIA a program has up to 64 heads here.
- It masks every tile, multiplies strides in 64 bits for each and divides by a block size that it learns at run time.
  Here only the last tile of a part has a mask, and sizes are constants.
- Tiles of fp8 are half as large, so that three of them are in flight.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
ENOUGH_PROGRAMS = 608 if torch.version.hip else 264  # two a multiprocessor
MAX_PARTS = 64
TILES_PER_PART = 4


@triton.jit
def _attend_tokens(
    query_latent,
    query_rope,
    kv_cache_ptr,
    table_ptr,
    peak,
    total,
    acc,
    first,
    last,
    scale,
    MASKED: tl.constexpr,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    TOKEN_STRIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr,
):
    """The online softmax over tokens first … last - 1, in base 2."""
    latent_dims = tl.arange(0, LATENT)
    rope_dims = LATENT + tl.arange(0, ROPE)
    for start in range(first, last, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < last
        if MASKED:
            blocks = tl.load(table_ptr + tokens // BLOCK_SIZE, mask=inside, other=0)
        else:
            blocks = tl.load(table_ptr + tokens // BLOCK_SIZE)
        # At most 2**23 slots: the product with the stride alone needs 64 bits.
        slots = (blocks * BLOCK_SIZE + tokens % BLOCK_SIZE).to(tl.int64)
        rows = kv_cache_ptr + (slots * TOKEN_STRIDE)[:, None]
        if MASKED:
            latent = tl.load(rows + latent_dims[None, :], mask=inside[:, None], other=0.0)
            rope = tl.load(rows + rope_dims[None, :], mask=inside[:, None], other=0.0)
        else:
            latent = tl.load(rows + latent_dims[None, :])
            rope = tl.load(rows + rope_dims[None, :])
        latent = latent.to(query_latent.dtype)
        scores = tl.dot(query_rope, rope.to(query_rope.dtype).T)
        scores = tl.dot(query_latent, latent.T, scores)
        if MASKED:
            scores = tl.where(inside[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(latent.dtype), latent, acc * shrink[:, None])
        peak = new_peak
    return peak, total, acc


@triton.jit
def _decode_part(
    query_ptr,
    kv_cache_ptr,
    kv_scale_ptr,
    block_table_ptr,
    seq_lens_ptr,
    out_ptr,
    lse2_ptr,
    sm_scale,
    num_heads,
    max_blocks,
    PARTS: tl.constexpr,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    TOKEN_STRIDE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
):
    """One part of the tokens of a sequence. With one part `out` is final."""
    part = tl.program_id(1)
    seq = tl.program_id(2).to(tl.int64)
    length = tl.load(seq_lens_ptr + seq)
    kv_scale = tl.load(kv_scale_ptr)
    part_length = tl.cdiv(tl.cdiv(length, PARTS), TILE) * TILE
    begin = part * part_length
    end = tl.minimum(begin + part_length, length)
    whole = begin + tl.maximum(end - begin, 0) // TILE * TILE
    table_ptr = block_table_ptr + seq * max_blocks
    scale = sm_scale * kv_scale * LOG2_E

    heads = tl.program_id(0) * HEADS + tl.arange(0, HEADS)
    stored = heads < num_heads
    rows = seq * num_heads + heads
    dims = tl.arange(0, LATENT)
    query_rows = query_ptr + rows[:, None] * (LATENT + ROPE)
    query_latent = tl.load(query_rows + dims[None, :], mask=stored[:, None], other=0.0)
    query_rope = tl.load(query_rows + LATENT + tl.arange(0, ROPE)[None, :], mask=stored[:, None], other=0.0)
    peak = tl.full((HEADS,), -float("inf"), tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, LATENT), tl.float32)
    peak, total, acc = _attend_tokens(
        query_latent, query_rope, kv_cache_ptr, table_ptr, peak, total, acc, begin, whole, scale,
        False, LATENT, ROPE, TOKEN_STRIDE, BLOCK_SIZE, TILE,
    )  # fmt: skip
    peak, total, acc = _attend_tokens(
        query_latent, query_rope, kv_cache_ptr, table_ptr, peak, total, acc, whole, end, scale,
        True, LATENT, ROPE, TOKEN_STRIDE, BLOCK_SIZE, TILE,
    )  # fmt: skip

    # A part without tokens has total 0, and the logarithm of that is minus infinity.
    places = rows * PARTS + part
    result = acc * (kv_scale / tl.where(total > 0, total, 1.0))[:, None]
    out_rows = out_ptr + places[:, None] * LATENT + dims[None, :]
    tl.store(out_rows, result.to(out_ptr.dtype.element_ty), mask=stored[:, None])
    tl.store(lse2_ptr + places, peak + tl.log2(total), mask=stored)


@triton.jit
def _merge(partial_ptr, partial_lse_ptr, out_ptr, lse2_ptr, PARTS: tl.constexpr, LATENT: tl.constexpr):
    """Weighted mean of the parts of one head of one sequence."""
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
    """Return heads and tokens of a tile, warps and stages.

    On NVIDIA 64 heads of 512 values take 128 registers a thread of 8 warps. A tile is held in fp8 and in 16 bits, so
    that one of 64 tokens spills registers. AMD has 64 KiB in all.
    """
    if torch.version.hip:
        return 16, 16 if latent_dim == 512 else 32, 4, 2
    if num_heads <= 16:
        return 16, 32, 4, 3
    if num_heads <= 32:
        return 32, 32, 8, 3
    return 64, 32, 8, 3


def mla_decode_fp8(query, kv_cache, kv_scale, block_table, seq_lens, sm_scale, out, lse2):
    num_seqs, num_heads, latent_dim = out.shape
    block_size = kv_cache.shape[1]
    heads, tile, num_warps, stages = _shape(num_heads, latent_dim)
    head_tiles = triton.cdiv(num_heads, heads)
    wanted = triton.cdiv(ENOUGH_PROGRAMS, num_seqs * head_tiles)
    most_tokens = block_table.shape[1] * block_size
    limit = max(1, min(wanted, triton.cdiv(most_tokens, TILES_PER_PART * tile), MAX_PARTS))
    parts = triton.next_power_of_2(limit)
    partial, partial_lse = out, lse2
    if parts > 1:
        partial = torch.empty((num_seqs, num_heads, parts, latent_dim), dtype=torch.float32, device=out.device)
        partial_lse = torch.empty((num_seqs, num_heads, parts), dtype=torch.float32, device=out.device)
    _decode_part[(head_tiles, parts, num_seqs)](
        query,
        kv_cache,
        kv_scale,
        block_table,
        seq_lens,
        partial,
        partial_lse,
        sm_scale,
        num_heads,
        block_table.shape[1],
        PARTS=parts,
        LATENT=latent_dim,
        ROPE=query.shape[2] - latent_dim,
        TOKEN_STRIDE=kv_cache.stride(1),
        BLOCK_SIZE=block_size,
        HEADS=heads,
        TILE=tile,
        num_warps=num_warps,
        num_stages=stages,
    )
    if parts > 1:
        _merge[(num_seqs * num_heads,)](partial, partial_lse, out, lse2, PARTS=parts, LATENT=latent_dim)
