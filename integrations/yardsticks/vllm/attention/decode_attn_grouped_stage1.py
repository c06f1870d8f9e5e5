"""First stage of vLLM's grouped decode attention.

The engine keeps the log-sum-exp behind the values in one tensor, and leaves empty splits unwritten. A kernel of ours
takes its tensor apart, and its time counts. MLA's shared cache of keys and values is not used, since the task has two.
"""

import torch
import triton
import triton.language as tl
from vllm.v1.attention.ops.triton_decode_attention import _decode_grouped_att_m_fwd


@triton.jit
def take_apart(
    packed, partial, partial_lse, seq_lens, rows, SPLITS: tl.constexpr, VALUES: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0)
    seq, split = place // rows, place % SPLITS
    length = tl.load(seq_lens + seq)
    used = split * tl.cdiv(length, SPLITS) < length
    columns = tl.arange(0, BLOCK)
    inside = columns < VALUES
    source = packed + place.to(tl.int64) * (VALUES + 1)
    values = tl.load(source + columns, mask=inside & used, other=0.0)
    tl.store(partial + place.to(tl.int64) * VALUES + columns, values, mask=inside)
    tl.store(partial_lse + place, tl.load(source + VALUES, mask=used, other=-float("inf")))


def decode_attn_grouped_stage1(query, key_cache, value_cache, block_table, seq_lens, sm_scale, partial, partial_lse):
    seqs, heads, splits, values = partial.shape
    packed = torch.empty((seqs, heads, splits, values + 1), dtype=torch.float32, device=query.device)
    one = torch.empty(1, dtype=torch.float32, device=query.device).fill_(1.0)
    _decode_grouped_att_m_fwd(
        query,
        key_cache,
        value_cache,
        packed,
        block_table,
        seq_lens,
        splits,
        sm_scale,
        key_cache.shape[1],
        0.0,
        one,
        one,
    )
    block = triton.next_power_of_2(values)
    take_apart[(seqs * heads * splits,)](packed, partial, partial_lse, seq_lens, heads * splits, splits, values, block)
