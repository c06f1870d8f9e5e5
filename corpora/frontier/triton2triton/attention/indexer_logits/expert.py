"""Logits of the lightning indexer: a program walks over several tiles of keys with all queries of a sequence.

What the baseline wastes, and what is done instead:

- It loads the query again for every 64 keys, and the keys again for every query of a sequence. Here a program holds all
  queries of its sequence and reads each of its keys once.
- Heads are the rows of its products, 16 to 64. Here keys are the rows, 128 of them, for which wgmma is made.
- Each program waits for its keys. Here the next tile is under way.
- It multiplies with keys that no query sees. Here such tiles are filled with -inf alone.
"""

import torch
import triton
import triton.language as tl

ENOUGH_PROGRAMS = 1216 if torch.version.hip else 1056
MOST_TILES = 16


@triton.jit
def _score_tiles(
    query_ptr,
    weights_ptr,
    key_cache_ptr,
    key_scales_ptr,
    block_table_ptr,
    seq_lens_ptr,
    logits_ptr,
    max_len,
    max_blocks,
    tiles,
    QUERIES: tl.constexpr,
    NUM_HEADS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    seq = tl.program_id(1).to(tl.int64)
    length = tl.load(seq_lens_ptr + seq)
    begin = tl.program_id(0) * tiles * TILE
    end = tl.minimum(begin + tiles * TILE, max_len)
    stop = tl.minimum(end, length)
    logits_ptr += seq * QUERIES * max_len
    queries = tl.arange(0, ROWS)
    seen = length - QUERIES + 1 + queries

    columns = tl.arange(0, ROWS * HEADS)
    members, heads = columns // HEADS, columns % HEADS
    present = (members < QUERIES) & (heads < NUM_HEADS)
    places = (seq * QUERIES + members) * NUM_HEADS + heads
    dims = tl.arange(0, DIM)
    query = tl.load(query_ptr + places[:, None] * DIM + dims[None, :], mask=present[:, None], other=0.0)
    weights = tl.load(weights_ptr + places, mask=present, other=0.0)
    table_row = block_table_ptr + seq * max_blocks
    for start in range(begin, stop, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < length
        blocks = tl.load(table_row + tokens // BLOCK_SIZE, mask=inside, other=0)
        slots = blocks.to(tl.int64) * BLOCK_SIZE + tokens % BLOCK_SIZE
        keys = tl.load(key_cache_ptr + slots[:, None] * DIM + dims[None, :], mask=inside[:, None], other=0.0)
        scales = tl.load(key_scales_ptr + slots, mask=inside, other=0.0)
        scores = tl.maximum(tl.dot(keys, query.T), 0.0) * weights[None, :]
        sums = tl.sum(tl.reshape(scores, (TILE, ROWS, HEADS)), axis=2) * scales[:, None]
        sums = tl.where(tokens[:, None] < seen[None, :], sums, -float("inf"))
        mask = (tokens < max_len)[:, None] & (queries < QUERIES)[None, :]
        tl.store(logits_ptr + queries.to(tl.int64)[None, :] * max_len + tokens[:, None], sums, mask=mask)

    for start in range(begin + tl.cdiv(tl.maximum(stop - begin, 0), TILE) * TILE, end, TILE):
        tokens = start + tl.arange(0, TILE)
        for member in range(QUERIES):
            nothing = tl.full((TILE,), -float("inf"), tl.float32)
            tl.store(logits_ptr + tl.cast(member, tl.int64) * max_len + tokens, nothing, mask=tokens < max_len)


def indexer_logits(query, weights, key_cache, key_scales, block_table, seq_lens, logits):
    rows, num_heads, head_dim = query.shape
    num_seqs, max_len = seq_lens.shape[0], logits.shape[1]
    queries = rows // num_seqs
    heads = max(16, triton.next_power_of_2(num_heads))
    columns = triton.next_power_of_2(queries) * heads
    tile = 64 if torch.version.hip else 128
    in_all = triton.cdiv(max_len, tile)
    tiles = max(1, min(MOST_TILES, num_seqs * in_all // ENOUGH_PROGRAMS))
    _score_tiles[(triton.cdiv(in_all, tiles), num_seqs)](
        query,
        weights,
        key_cache,
        key_scales,
        block_table,
        seq_lens,
        logits,
        max_len,
        block_table.shape[1],
        tiles,
        QUERIES=queries,
        NUM_HEADS=num_heads,
        BLOCK_SIZE=key_cache.shape[1],
        ROWS=columns // heads,
        HEADS=heads,
        TILE=tile,
        DIM=head_dim,
        num_warps=8 if columns > 64 else 4,
        num_stages=2 if torch.version.hip else 3,
    )
