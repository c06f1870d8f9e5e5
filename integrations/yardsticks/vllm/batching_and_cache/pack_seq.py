"""vLLM's padded batch, with the launch parameters of its wrapper. Kernels of ours make lengths out of offsets."""

import torch
import triton
import triton.language as tl
from vllm.v1.attention.ops.common import PackSeqTritonKernel


@triton.jit
def lengths_of(offsets, lengths, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    begin = tl.load(offsets + i, mask=i < n)
    tl.store(lengths + i, tl.load(offsets + i + 1, mask=i < n) - begin, mask=i < n)


def pack_seq(x, cu_seqlens, padding, out):
    seqs, longest, hidden = out.shape
    lengths = torch.empty(seqs, dtype=torch.int32, device=x.device)
    lengths_of[(1,)](cu_seqlens, lengths, seqs, triton.next_power_of_2(seqs))
    PackSeqTritonKernel.kernel[(seqs, triton.cdiv(longest, 64), triton.cdiv(hidden, 64))](
        x,
        out,
        lengths,
        x.shape[0],
        hidden,
        longest,
        PAD_VALUE=padding,
        PAD_IS_UINT8=False,
        BLOCK_T=64,
        BLOCK_D=64,
        num_warps=4,
        num_stages=2,
    )
