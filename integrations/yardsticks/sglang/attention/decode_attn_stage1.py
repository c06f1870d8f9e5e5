"""First stage of SGLang's decode attention, with the launch parameters of its wrapper.

The engine rounds splits up to 32 keys; here they are as long as the task says. It leaves empty splits unwritten,
so theirs are filled first, and the time of that counts. It multiplies queries and keys in their own dtype, so 16-bit
cases may exceed the tolerance.
"""

import torch
import triton
from sglang.kernels.ops.attention.decode_attention import _fwd_kernel_stage1


def decode_attn_stage1(query, key_cache, value_cache, kv_indices, cu_seqlens, sm_scale, softcap, partial, partial_lse):
    seqs, heads, splits, dim = partial.shape
    partial.zero_()
    partial_lse.fill_(-float("inf"))
    counts = torch.empty(seqs, dtype=torch.int32, device=query.device).fill_(splits)
    block = triton.next_power_of_2(dim)
    _fwd_kernel_stage1[(seqs, heads, splits)](
        query,
        key_cache,
        value_cache,
        sm_scale,
        cu_seqlens,
        kv_indices,
        partial,
        partial_lse,
        counts,
        query.stride(0),
        query.stride(1),
        key_cache.stride(0),
        key_cache.stride(1),
        value_cache.stride(0),
        value_cache.stride(1),
        key_cache.stride(0),
        key_cache.stride(0),
        value_cache.stride(0),
        value_cache.stride(0),
        partial.stride(0),
        partial.stride(1),
        partial.stride(2),
        kv_group_num=1,
        BLOCK_DMODEL=block,
        BLOCK_DV=block,
        BLOCK_N=64,
        MIN_BLOCK_KV=1,
        logit_cap=softcap,
        Lk=dim,
        Lv=dim,
        xai_temperature_len=-1,
        PAGE_SIZE=1,
        num_warps=4,
        num_stages=2,
    )
