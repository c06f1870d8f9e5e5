"""vLLM's first product of LoRA, with its default configuration.

The engine adds parts of K atomically, onto zeros. A kernel of ours makes its counts, ids and addresses from offsets.
"""

import torch
import triton
import triton.language as tl
from vllm.lora.ops.triton_ops.lora_shrink_op import _lora_shrink_kernel


@triton.jit
def groups_of(offsets, counts, ids, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    count = tl.load(offsets + i + 1, mask=i < n) - tl.load(offsets + i, mask=i < n)
    tl.store(counts + i, count, mask=i < n)
    tl.store(ids + i, i - 1, mask=i < n)


def lora_shrink(x, weight, token_order, lora_offsets, scaling, out):
    slices, loras, rank, hidden = weight.shape
    tokens, groups = x.shape[0], loras + 1
    counts = torch.empty(groups, dtype=torch.int32, device=x.device)
    ids = torch.empty(groups, dtype=torch.int32, device=x.device)
    groups_of[(1,)](lora_offsets, counts, ids, groups, triton.next_power_of_2(groups))
    pointers = weight
    if slices > 1:
        pointers = torch.empty(slices, dtype=torch.int64, device=x.device)
        for number in range(slices):
            pointers[number : number + 1].fill_(weight[number].data_ptr())
    out.zero_()
    split, block_k = (64, 256) if tokens < 128 else (8, 32)
    _lora_shrink_kernel[(split * triton.cdiv(tokens, 32) * triton.cdiv(rank, 16), slices, groups)](
        x,
        pointers,
        out,
        tokens,
        rank,
        hidden,
        token_order,
        counts,
        lora_offsets,
        ids,
        scaling,
        x.stride(0),
        x.stride(1),
        weight.stride(1),
        weight.stride(2),
        weight.stride(3),
        out.stride(0),
        out.stride(1),
        out.stride(2),
        32,
        16,
        block_k,
        hidden % (block_k * split) == 0,
        split,
        8,
        slices,
        False,
        num_warps=4,
        num_ctas=1,
        num_stages=2,
        launch_pdl=False,
    )
