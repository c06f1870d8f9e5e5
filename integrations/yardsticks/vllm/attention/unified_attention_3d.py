"""vLLM's unified attention with split keys, whose tiles are here blocks of the cache: so segments are the task's.

The engine leaves segments past a sequence's end as they are, and counts 1 where a window hides a whole segment. Two
kernels of ours, before and after, write what the task says; their time counts.
"""

import triton
import triton.language as tl
from vllm.v1.attention.ops.triton_unified_attention import kernel_unified_attention


@triton.jit
def empty_segments(acc, peaks, sums, DIM: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    dims = tl.arange(0, BLOCK)
    tl.store(acc + row * DIM + dims, tl.zeros((BLOCK,), tl.float32), mask=dims < DIM)
    tl.store(peaks + row, -float("inf"))
    tl.store(sums + row, 0.0)


@triton.jit
def no_sum_without_keys(peaks, sums, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    hidden = tl.load(peaks + i, mask=i < n, other=0.0) == -float("inf")
    tl.store(sums + i, tl.zeros((BLOCK,), tl.float32), mask=(i < n) & hidden)


def unified_attention_3d(
    query,
    key_cache,
    value_cache,
    block_table,
    cu_seqlens,
    seq_lens,
    sm_scale,
    softcap,
    sliding_window,
    segment_acc,
    segment_max,
    segment_sum,
):
    tokens, heads, segments, dim = segment_acc.shape
    _, block_size, kv_heads, _ = key_cache.shape
    group = heads // kv_heads
    rows = 16 if group <= 16 else triton.next_power_of_2(group)
    queries = rows // group
    count = segment_max.numel()
    empty_segments[(count,)](segment_acc, segment_max, segment_sum, dim, triton.next_power_of_2(dim))
    kernel_unified_attention[(tokens // queries + seq_lens.shape[0], kv_heads, segments)](
        output_ptr=segment_acc,
        query_ptr=query,
        key_cache_ptr=key_cache,
        value_cache_ptr=value_cache,
        sink_ptr=None,
        block_tables_ptr=block_table,
        seq_lens_ptr=seq_lens,
        alibi_slopes_ptr=None,
        qq_bias_ptr=None,
        scale=sm_scale,
        q_scale=None,
        k_scale=None,
        v_scale=None,
        out_scale=1.0,
        softcap=softcap,
        num_query_heads=heads,
        num_queries_per_kv=group,
        block_table_stride=block_table.stride(0),
        query_stride_0=query.stride(0),
        query_stride_1=query.stride(1),
        output_stride_0=0,
        output_stride_1=0,
        qq_bias_stride_0=0,
        BLOCK_SIZE=block_size,
        TILE_SIZE=block_size,
        HEAD_SIZE=dim,
        HEAD_SIZE_PADDED=triton.next_power_of_2(dim),
        USE_ALIBI_SLOPES=False,
        USE_ALIBI_SQRT=False,
        USE_QQ_BIAS=False,
        USE_SOFTCAP=softcap > 0,
        USE_SINKS=False,
        SLIDING_WINDOW=sliding_window,
        USE_CAUSAL=True,
        USE_PER_SEQ_CAUSAL=False,
        per_seq_causal_ptr=None,
        USE_MM_PREFIX=False,
        MAX_MM_RANGES=0,
        mm_prefix_range_ptr=None,
        rswa_prefix_lens_ptr=seq_lens,
        R_SWA_WINDOW=0,
        USE_R_SWA=False,
        stride_k_cache_0=key_cache.stride(0),
        stride_k_cache_1=key_cache.stride(1),
        stride_k_cache_2=key_cache.stride(2),
        stride_k_cache_3=key_cache.stride(3),
        stride_v_cache_0=value_cache.stride(0),
        stride_v_cache_1=value_cache.stride(1),
        stride_v_cache_2=value_cache.stride(2),
        stride_v_cache_3=value_cache.stride(3),
        query_start_len_ptr=cu_seqlens,
        BLOCK_Q=queries,
        num_seqs=seq_lens.shape[0],
        BLOCK_M=rows,
        NUM_SEGMENTS_PER_SEQ=segments,
        USE_FP8=False,
        IS_3D=True,
        segm_output_ptr=segment_acc,
        segm_max_ptr=segment_max,
        segm_expsum_ptr=segment_sum,
    )
    no_sum_without_keys[(triton.cdiv(count, 1024),)](segment_max, segment_sum, count, 1024)
