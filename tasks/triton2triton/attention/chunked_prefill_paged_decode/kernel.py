"""Paged decode attention: one program per sequence and query head, an online softmax over tiles of tokens."""

import triton
import triton.language as tl


@triton.jit
def decode_one_head(
    query_ptr,
    key_cache_ptr,
    value_cache_ptr,
    block_table_ptr,
    seq_lens_ptr,
    out_ptr,
    sm_scale,
    num_kv_heads,
    head_dim,
    block_size,
    max_blocks,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
):
    seq = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    num_heads = tl.num_programs(1)
    kv_head = head // (num_heads // num_kv_heads)
    dims = tl.arange(0, DIM)
    query_row = (seq * num_heads + head) * head_dim + dims
    query = tl.load(query_ptr + query_row, mask=dims < head_dim, other=0.0).to(tl.float32) * sm_scale

    length = tl.load(seq_lens_ptr + seq)
    peak = -float("inf")
    total = 0.0
    acc = tl.zeros((DIM,), dtype=tl.float32)
    for start in range(0, length, TILE):
        tokens = start + tl.arange(0, TILE)
        inside = tokens < length
        blocks = tl.load(block_table_ptr + seq * max_blocks + tokens // block_size, mask=inside, other=0)
        slots = blocks.to(tl.int64) * block_size + tokens % block_size
        offsets = ((slots * num_kv_heads + kv_head) * head_dim)[:, None] + dims[None, :]
        mask = inside[:, None] & (dims < head_dim)[None, :]
        keys = tl.load(key_cache_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        scores = tl.where(inside, tl.sum(keys * query[None, :], axis=1), -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_peak)
        shrink = tl.exp(peak - new_peak)
        values = tl.load(value_cache_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(values * weights[:, None], axis=0)
        total = total * shrink + tl.sum(weights, axis=0)
        peak = new_peak
    tl.store(out_ptr + query_row, (acc / total).to(out_ptr.dtype.element_ty), mask=dims < head_dim)


def chunked_prefill_paged_decode(query, key_cache, value_cache, block_table, seq_lens, sm_scale, out):
    num_seqs, num_heads, head_dim = query.shape
    decode_one_head[(num_seqs, num_heads)](
        query,
        key_cache,
        value_cache,
        block_table,
        seq_lens,
        out,
        sm_scale,
        key_cache.shape[2],
        head_dim,
        key_cache.shape[1],
        block_table.shape[1],
        TILE=32,
        DIM=triton.next_power_of_2(head_dim),
    )
