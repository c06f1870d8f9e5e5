"""vLLM's ragged batch, with the launch parameters of its wrapper. A kernel of ours makes lengths out of offsets."""

import torch
import triton
import triton.language as tl
from vllm.v1.attention.ops.common import UnpackSeqTritonKernel


@triton.jit
def lengths_of(offsets, lengths, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    begin = tl.load(offsets + i, mask=i < n)
    tl.store(lengths + i, tl.load(offsets + i + 1, mask=i < n) - begin, mask=i < n)


def unpack_seq(padded, cu_seqlens, out):
    seqs, longest, hidden = padded.shape
    lengths = torch.empty(seqs, dtype=torch.int32, device=padded.device)
    lengths_of[(1,)](cu_seqlens, lengths, seqs, triton.next_power_of_2(seqs))
    UnpackSeqTritonKernel.kernel[(seqs, triton.cdiv(longest, 64), triton.cdiv(hidden, 64))](
        padded,
        out,
        lengths,
        seqs,
        longest,
        hidden,
        BLOCK_T=64,
        BLOCK_D=64,
        num_warps=4,
        num_stages=2,
    )
