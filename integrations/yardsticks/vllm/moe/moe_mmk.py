"""vLLM's fused experts with block-scaled fp8, on rows that are in expert order already.

A kernel of ours lists the rows, with none for blocks that are unused; its time counts. The configuration is the one
that the engine takes where none is tuned, with blocks as tall as the task's.
"""

import torch
import triton
import triton.language as tl
from vllm.model_executor.layers.fused_moe.fused_moe import get_default_config, invoke_fused_moe_triton_kernel

TYPES = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


def enable_swap_ab(rows, columns):
    """As the engine decides on NVIDIA's Hopper: short tiles are computed transposed."""
    hopper = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9
    return hopper and rows < 64 and columns >= 64


def resolve_moe_use_td():
    return False


def warn_if_moe_use_td_ineffective(*_, **__):
    pass


def set_triton_allocator(_):
    pass


@triton.jit
def list_rows(expert_ids, rows, used, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    block, i = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.num_programs(0) * ROWS
    there = tl.load(expert_ids + block) >= 0
    tl.store(rows + block * ROWS + i, tl.where(there, block * ROWS + i, total), mask=i < ROWS)
    tl.store(used, total)


def moe_mmk(a, b, a_scales, b_scales, expert_ids, out, group_n, group_k):
    (rows, k), (experts, n, _), blocks = a.shape, b.shape, expert_ids.shape[0]
    height = rows // blocks
    ids = torch.empty(rows + 1, dtype=torch.int32, device=a.device)
    list_rows[(blocks,)](expert_ids, ids, ids[rows:], height, triton.next_power_of_2(height))
    config = get_default_config(rows, experts, n, k, 1, "fp8_w8a8", [group_n, group_k])
    config["BLOCK_SIZE_M"] = height
    invoke_fused_moe_triton_kernel(
        a,
        b,
        out.view(rows, 1, n),
        a_scales,
        b_scales,
        None,
        ids[:rows],
        expert_ids,
        ids[rows:],
        False,
        1,
        config,
        TYPES[out.dtype],
        True,
        False,
        False,
        False,
        False,
        block_shape=[group_n, group_k],
    )
