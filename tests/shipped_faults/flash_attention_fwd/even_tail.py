"""expect: wrong_result in heldout-19. Mask at the end: left out where blocks of queries divide the length, though blocks of keys do not.

Flash attention: one program per block of queries of one head, an online softmax over all blocks of keys.
"""

import triton
import triton.language as tl


@triton.jit
def attend(
    query_ptr,
    key_ptr,
    value_ptr,
    out_ptr,
    lse_ptr,
    sm_scale,
    num_heads,
    num_kv_heads,
    seq_len,
    head_dim,
    CAUSAL: tl.constexpr,
    EVEN: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
):
    query_blocks = tl.cdiv(seq_len, QUERIES)
    head = (tl.program_id(0) // query_blocks).to(tl.int64)
    kv_head = head // num_heads * num_kv_heads + head % num_heads // (num_heads // num_kv_heads)
    i = tl.program_id(0) % query_blocks * QUERIES + tl.arange(0, QUERIES)
    dims = tl.arange(0, DIM)
    query_offsets = (head * seq_len + i)[:, None] * head_dim + dims[None, :]
    query_mask = (i < seq_len)[:, None] & (dims < head_dim)[None, :]
    query = tl.load(query_ptr + query_offsets, mask=query_mask, other=0.0)

    peak = tl.full((QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    acc = tl.zeros((QUERIES, DIM), tl.float32)
    for start in range(0, seq_len, KEYS):
        j = start + tl.arange(0, KEYS)
        key_offsets = (kv_head * seq_len + j)[:, None] * head_dim + dims[None, :]
        key_mask = (j < seq_len)[:, None] & (dims < head_dim)[None, :]
        key = tl.load(key_ptr + key_offsets, mask=key_mask, other=0.0)
        value = tl.load(value_ptr + key_offsets, mask=key_mask, other=0.0)
        scores = tl.dot(query, key.T, input_precision="ieee") * sm_scale
        # Blocks that are full need no mask; a causal one covers the end as well.
        if CAUSAL:
            scores = tl.where(j[None, :] <= i[:, None], scores, -float("inf"))
        elif not EVEN:
            scores = tl.where((j < seq_len)[None, :], scores, -float("inf"))
        # Key 0 is visible to all, so that the peak is finite from the first block on.
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        shrink = tl.exp(peak - new_peak)
        weights = tl.exp(scores - new_peak[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        peak = new_peak
    tl.store(out_ptr + query_offsets, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=query_mask)
    tl.store(lse_ptr + head * seq_len + i, peak + tl.log(total), mask=i < seq_len)


def flash_attention_fwd(query, key, value, sm_scale, causal, out, lse):
    batch, num_heads, seq_len, head_dim = query.shape
    queries = 32
    dim = max(16, triton.next_power_of_2(head_dim))
    keys = 64 if dim * query.element_size() <= 512 else 32
    attend[(triton.cdiv(seq_len, queries) * num_heads * batch,)](
        query,
        key,
        value,
        out,
        lse,
        sm_scale,
        num_heads,
        key.shape[1],
        seq_len,
        head_dim,
        CAUSAL=causal,
        EVEN=seq_len % queries == 0,
        QUERIES=queries,
        KEYS=keys,
        DIM=dim,
    )
