"""vLLM's prefill with a prefix and ALiBi, its paged cache laid out as the task has it.

The engine knows the longest length on the host: an adapter copies the offsets there. It also takes lengths with the
prefix, which a kernel of ours computes. The time of both counts.
"""

import itertools

import torch
import triton
import triton.language as tl
from vllm.v1.attention.ops.prefix_prefill import context_attention_fwd

IS_TURING = False


@triton.jit
def lengths_with_prefix(offsets, prefixes, lengths, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(offsets + i, mask=i < n)
    end = tl.load(offsets + i + 1, mask=i < n)
    tl.store(lengths + i, tl.load(prefixes + i, mask=i < n) + end - begin, mask=i < n)


def paged_prefix_prefill_alibi(
    query,
    key,
    value,
    key_cache,
    value_cache,
    alibi_slopes,
    block_table,
    cu_seqlens,
    context_lens,
    sm_scale,
    out,
):
    seqs, dim = context_lens.shape[0], query.shape[2]
    longest = max(end - begin for begin, end in itertools.pairwise(cu_seqlens.tolist()))
    lengths = torch.empty_like(context_lens)
    lengths_with_prefix[(triton.cdiv(seqs, 128),)](cu_seqlens, context_lens, lengths, seqs, 128)
    blocks, size, heads, _ = key_cache.shape
    packed = 16 // key_cache.element_size()
    packed = packed if dim % packed == 0 else 1
    context_attention_fwd(
        query,
        key,
        value,
        out,
        "auto",
        key_cache.view(blocks, size, heads, dim // packed, packed).permute(0, 2, 3, 1, 4),
        value_cache.permute(0, 2, 3, 1),
        block_table,
        cu_seqlens,
        lengths,
        0,
        longest,
        None,
        None,
        alibi_slopes=alibi_slopes,
        sm_scale=sm_scale,
    )
