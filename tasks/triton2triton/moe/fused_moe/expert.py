"""Routed expert product with wide tiles, in an order that keeps an expert's weights in the cache.

Blocks of sorted choices that share an expert are neighbours, so programs run down a few blocks before they move on to
the next columns. Programs past the rows in use end at once.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
GROUP = 8


@triton.jit
def _expert_tile(
    x_ptr,
    weight_ptr,
    bias_ptr,
    topk_weights_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    out_ptr,
    num_choices,
    N,
    K,
    top_k,
    HAS_BIAS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    EVEN_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    blocks = tl.cdiv(tl.load(rows_in_use_ptr), BLOCK_M)
    tiles = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    if program >= blocks * tiles:
        return
    first = program // (GROUP_M * tiles) * GROUP_M
    height = tl.minimum(blocks - first, GROUP_M)
    within = program % (GROUP_M * tiles)
    block = first + within % height
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)

    expert = tl.load(expert_ids_ptr + block).to(tl.int64)
    choices = tl.load(sorted_ids_ptr + block * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    real = choices < num_choices
    inside = columns < N
    depth = tl.arange(0, BLOCK_K)
    # Rows past N read column 0: a mask less in the loop, and nothing of them is stored. Padding rows of x have theirs:
    # where experts have few tokens, they would be most of what is read.
    x_at = x_ptr + (choices // top_k)[:, None] * K + depth[None, :]
    weight_at = weight_ptr + (expert * N + tl.where(inside, columns, 0))[None, :] * K + depth[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if EVEN_K:
            x = tl.load(x_at, mask=real[:, None], other=0.0)
            w = tl.load(weight_at)
        else:
            x = tl.load(x_at, mask=real[:, None] & (depth < K - start)[None, :], other=0.0)
            w = tl.load(weight_at, mask=(depth < K - start)[:, None], other=0.0)
        acc = tl.dot(x, w, acc, input_precision=PRECISION)
        x_at += BLOCK_K
        weight_at += BLOCK_K
    if HAS_BIAS:
        acc += tl.load(bias_ptr + expert * N + columns, mask=inside, other=0.0).to(tl.float32)[None, :]
    if WEIGHTED:
        acc *= tl.load(topk_weights_ptr + choices, mask=real, other=0.0)[:, None]
    target = out_ptr + choices[:, None] * N + columns[None, :]
    tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=real[:, None] & inside[None, :])


def _tile(block_m: int, item_bytes: int) -> tuple[int, int, int]:
    """Columns, depth and warps: narrow rows are bound by the weights, and want long stretches of them in flight."""
    if block_m == 16:
        return 32, 256 // item_bytes, 4
    if item_bytes == 4:
        return (64, 32, 4) if block_m == 32 else (128, 32, 8)
    return {32: (128, 32, 4), 64: (128, 64, 4)}.get(block_m, (256, 64, 8))


def _no_wider_than(size: int, block: int) -> int:
    return min(block, max(16, triton.next_power_of_2(size)))


def fused_moe(
    x, weight, bias, topk_weights, sorted_token_ids, expert_ids, num_tokens_post_padded, mul_routed_weight, out
):
    _, N, K = weight.shape
    blocks = expert_ids.numel()
    block_m = sorted_token_ids.numel() // blocks
    block_n, block_k, num_warps = _tile(block_m, x.element_size())
    block_n, block_k = _no_wider_than(N, block_n), _no_wider_than(K, block_k)
    _expert_tile[(blocks * triton.cdiv(N, block_n),)](
        x,
        weight,
        bias,
        topk_weights,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        out,
        topk_weights.numel(),
        N,
        K,
        topk_weights.shape[1],
        HAS_BIAS=bias is not None,
        WEIGHTED=mul_routed_weight,
        EVEN_K=K % block_k == 0,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=GROUP,
        num_warps=num_warps,
        # On AMD two stages are one buffer in 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 4 if block_m == 64 else 3,
    )
