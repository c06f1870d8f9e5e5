"""vLLM's causal convolution, with the launch parameters of its wrapper.

The engine gets a list of blocks of 8 tokens from the host. A kernel of ours makes it on the device; its time counts.
The engine does not touch the states of empty sequences. It multiplies in the dtype of its
input, so 16-bit cases may exceed the tolerance.
"""

import torch
import triton
import triton.language as tl
from vllm.model_executor.layers.mamba.ops.causal_conv1d import _causal_conv1d_fwd_kernel


@triton.jit
def list_blocks(offsets, seqs, places, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    seq = tl.program_id(0)
    first = 0
    for other in range(seq):
        length = tl.load(offsets + other + 1) - tl.load(offsets + other)
        first += (length + SIZE - 1) // SIZE
    count = (tl.load(offsets + seq + 1) - tl.load(offsets + seq) + SIZE - 1) // SIZE
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(seqs + first + i, tl.full((BLOCK,), 0, tl.int32) + seq, mask=i < count)
        tl.store(places + first + i, i, mask=i < count)


def causal_conv1d_fwd(x, weight, bias, cu_seqlens, idx_mapping, has_initial_state, conv_state, silu, y):
    (tokens, hidden), width, seqs = x.shape, weight.shape[1], idx_mapping.shape[0]
    blocks = tokens // 8 + seqs
    lists = torch.empty((2, blocks), dtype=torch.int32, device=x.device).fill_(-1)
    list_blocks[(seqs,)](cu_seqlens, lists[0], lists[1], 8, 256)
    _causal_conv1d_fwd_kernel[(blocks, triton.cdiv(hidden, 256))](
        x,
        weight,
        bias,
        conv_state,
        idx_mapping,
        has_initial_state,
        cu_seqlens,
        lists[0],
        lists[1],
        y,
        hidden,
        conv_state.shape[0],
        x.stride(1),
        x.stride(0),
        weight.stride(0),
        weight.stride(1),
        conv_state.stride(0),
        conv_state.stride(2),
        conv_state.stride(1),
        idx_mapping.stride(0),
        y.stride(1),
        y.stride(0),
        -1,
        -1,
        HAS_BIAS=bias is not None,
        KERNEL_WIDTH=width,
        SILU_ACTIVATION=silu,
        HAS_NULL_BLOCK=True,
        NP2_STATELEN=triton.next_power_of_2(width - 1),
        BLOCK_M=8,
        BLOCK_N=256,
        num_stages=2,
        launch_pdl=False,
    )
