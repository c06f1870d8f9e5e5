"""Second stage of SGLang's decode attention, with the launch parameters of its wrapper.

The engine takes offsets instead of lengths, rounds splits up to 32 keys, and returns no log-sum-exp. Here splits are
as long as the task says. Kernels of ours make the offsets and the log-sum-exp, and their time counts.
"""

import torch
import triton
import triton.language as tl
from sglang.kernels.ops.attention.decode_attention import _fwd_kernel_stage2


@triton.jit
def offsets_of(lengths, offsets, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.cumsum(tl.load(lengths + i, mask=i < n, other=0), 0)
    tl.store(offsets + i + 1, total, mask=i < n)
    tl.store(offsets, 0)


@triton.jit
def log_sum_exp(partial_lse, lengths, lse, heads, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    split = tl.arange(0, BLOCK)
    length = tl.load(lengths + row // heads)
    used = (split < SPLITS) & (split * tl.cdiv(length, SPLITS) < length)
    x = tl.load(partial_lse + row * SPLITS + split, mask=used, other=-float("inf"))
    peak = tl.max(x, 0)
    tl.store(lse + row, peak + tl.log(tl.sum(tl.exp(x - peak), 0)))


def decode_attn_stage2(partial, partial_lse, seq_lens, out, lse):
    seqs, heads, splits, values = partial.shape
    offsets = torch.empty(seqs + 1, dtype=torch.int32, device=partial.device)
    counts = torch.empty(seqs, dtype=torch.int32, device=partial.device).fill_(splits)
    offsets_of[(1,)](seq_lens, offsets, seqs, triton.next_power_of_2(seqs))
    _fwd_kernel_stage2[(seqs, heads)](
        partial,
        partial_lse,
        out,
        1.0,
        offsets,
        counts,
        None,
        partial.stride(0),
        partial.stride(1),
        partial.stride(2),
        out.stride(0),
        out.stride(1),
        MAX_KV_SPLITS=splits,
        MIN_BLOCK_KV=1,
        BLOCK_DV=triton.next_power_of_2(values),
        Lv=values,
        HAS_SINK=False,
        num_warps=4,
        num_stages=2,
    )
    log_sum_exp[(seqs * heads,)](partial_lse, seq_lens, lse, heads, splits, triton.next_power_of_2(splits))
