"""vLLM's reduction of segments. It looks up the lengths of sequences, to skip what they do not reach.

The task marks empty segments by their maximum alone, so one sequence that reaches all segments is passed.
"""

import torch
import triton
from vllm.v1.attention.ops.triton_unified_attention import reduce_segments as engine_reduce


def reduce_segments(segment_acc, segment_max, segment_sum, out):
    tokens, heads, segments, dim = segment_acc.shape
    numbers = torch.empty(3, dtype=torch.int32, device=out.device)
    numbers[:1].fill_(0)
    numbers[1:2].fill_(tokens)
    numbers[2:].fill_(16 * segments)
    engine_reduce[(tokens, heads)](
        output_ptr=out,
        segm_output_ptr=segment_acc,
        segm_max_ptr=segment_max,
        segm_expsum_ptr=segment_sum,
        seq_lens_ptr=numbers[2:],
        num_seqs=1,
        num_query_heads=heads,
        out_scale_inv=1.0,
        output_stride_0=out.stride(0),
        output_stride_1=out.stride(1),
        block_table_stride=0,
        TILE_SIZE=16,
        HEAD_SIZE=dim,
        HEAD_SIZE_PADDED=triton.next_power_of_2(dim),
        query_start_len_ptr=numbers,
        BLOCK_Q=1,
        NUM_SEGMENTS_PER_SEQ=segments,
        USE_FP8=False,
    )
