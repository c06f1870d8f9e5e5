"""vLLM's unified attention on a batch of decodes, with split keys where its wrapper splits small batches."""

import torch
from vllm.v1.attention.ops.triton_unified_attention import unified_attention


class KVQuantMode:
    """Values of the engine's enumeration that it compares with."""

    NONE = 0
    INT8_PER_TOKEN_HEAD = 2
    FP8_PER_TOKEN_HEAD = 3
    INT4_PER_TOKEN_HEAD = 4


def unified_attention_int4(**_):
    """Never called: caches of the task are not quantized."""
    raise NotImplementedError


def split_buffers(query):
    """Scratch memory of the engine's split keys, 16 segments as it has by default."""
    seqs, heads, dim = query.shape
    padded = 1 << (dim - 1).bit_length()
    acc = torch.empty((seqs, heads, 16, padded), dtype=torch.float32, device=query.device)
    peaks = torch.empty((seqs, heads, 16), dtype=torch.float32, device=query.device)
    return acc, peaks, torch.empty_like(peaks)


def chunked_prefill_paged_decode(query, key_cache, value_cache, block_table, seq_lens, sm_scale, out):
    seqs, kv_heads = seq_lens.shape[0], key_cache.shape[2]
    offsets = torch.arange(seqs + 1, dtype=torch.int32, device=query.device)
    acc, peaks, sums = split_buffers(query)
    unified_attention(
        query,
        key_cache,
        value_cache,
        out,
        offsets,
        1,
        seq_lens,
        block_table.shape[1] * key_cache.shape[1],
        sm_scale,
        True,
        (-1, -1),
        block_table,
        0,
        None,
        None,
        None,
        seq_threshold_3D=128 // kv_heads,
        num_par_softmax_segments=16,
        softmax_segm_output=acc,
        softmax_segm_max=peaks,
        softmax_segm_expsum=sums,
        kv_quant_mode=0,
    )
