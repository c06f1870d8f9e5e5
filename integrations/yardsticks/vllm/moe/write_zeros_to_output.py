"""vLLM's zeros for experts elsewhere: a part of its fused kernel, which a launcher of ours calls on the same tiles."""

import torch
import triton
import triton.language as tl
from vllm.model_executor.layers.fused_moe.fused_moe import write_zeros_to_output as engine_zeros

TYPES = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


@triton.jit
def zeros_of_blocks(
    out, ids, experts, used, rows, N, stride, M: tl.constexpr, COLUMNS: tl.constexpr, TYPE: tl.constexpr
):
    block = tl.program_id(0)
    if block * M >= tl.load(used):
        return
    if tl.load(experts + block) != -1:
        return
    tokens = tl.load(ids + block * M + tl.arange(0, M)).to(tl.int64)
    engine_zeros(out, stride, 1, tl.program_id(1), N, tokens, tokens < rows, M, COLUMNS, TYPE)


def write_zeros_to_output(out, sorted_token_ids, expert_ids, num_tokens_post_padded):
    rows, n = out.shape
    height = sorted_token_ids.shape[0] // expert_ids.shape[0]
    zeros_of_blocks[(expert_ids.shape[0], triton.cdiv(n, 128))](
        out,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        rows,
        n,
        out.stride(0),
        height,
        128,
        TYPES[out.dtype],
    )
