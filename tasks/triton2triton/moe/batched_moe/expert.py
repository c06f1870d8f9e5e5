"""All experts at once by a fixed number of programs that share the tiles with tokens evenly.

Every program counts how many tiles all experts have together, from the counts that lie in one small tensor, and takes
each n-th. Buffers that are mostly empty then cost nothing, and no program waits behind the most popular expert.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units
PROGRAMS = 1024


@triton.jit
def _shared_tiles(
    x_ptr,
    weight_ptr,
    bias_ptr,
    counts_ptr,
    out_ptr,
    num_experts,
    max_tokens,
    N,
    K,
    HAS_BIAS: tl.constexpr,
    EXPERTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    experts = tl.arange(0, EXPERTS)
    counts = tl.load(counts_ptr + experts, mask=experts < num_experts, other=0)
    ends = tl.cumsum((counts + BLOCK_M - 1) // BLOCK_M, axis=0)
    blocks = tl.max(ends, axis=0)
    for tile in range(tl.program_id(0), blocks * tl.cdiv(N, BLOCK_N), tl.num_programs(0)):
        # Neighbouring programs share columns of one expert's weights.
        block = tile % blocks
        before = ends <= block
        expert = tl.sum(before.to(tl.int32), axis=0).to(tl.int64)
        first = (block - tl.max(tl.where(before, ends, 0), axis=0)) * BLOCK_M
        count = tl.load(counts_ptr + expert)
        rows = first + tl.arange(0, BLOCK_M)
        columns = tile // blocks * BLOCK_N + tl.arange(0, BLOCK_N)
        depth = tl.arange(0, BLOCK_K)
        # Offsets inside of an expert's buffers have 32 bits, which takes fewer registers.
        x_at = x_ptr + expert * max_tokens * K + (tl.minimum(rows, count - 1)[:, None] * K + depth[None, :])
        w_at = weight_ptr + expert * N * K + (tl.minimum(columns, N - 1)[None, :] * K + depth[:, None])
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            x = tl.load(x_at, mask=(depth < K - start)[None, :], other=0.0)
            w = tl.load(w_at, mask=(depth < K - start)[:, None], other=0.0)
            acc = tl.dot(x, w, acc, input_precision=PRECISION)
            x_at += BLOCK_K
            w_at += BLOCK_K
        if HAS_BIAS:
            bias = tl.load(bias_ptr + expert * N + columns, mask=columns < N, other=0.0)
            acc += bias[None, :].to(tl.float32)
        target = out_ptr + expert * max_tokens * N + (rows[:, None] * N + columns[None, :])
        inside = (rows < count)[:, None] & (columns < N)[None, :]
        tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=inside)


def _tile(max_tokens: int, K: int, item_bytes: int) -> tuple[int, int, int, int]:
    """Rows, columns, depth and warps: the widest tile whose rows a full expert fills."""
    if max_tokens <= 16:
        return 16, 64, 128 // item_bytes, 4
    if item_bytes == 4:
        return 64, 128, 32, 4
    if K % 16:
        # Rows that are no whole vectors are loaded value by value, and addresses of so many values fill the registers.
        return 64, 64, 32, 4
    return (64, 128, 64, 4) if max_tokens <= 512 else (128, 256, 64, 8)


def _no_wider_than(size: int, block: int) -> int:
    return min(block, max(16, triton.next_power_of_2(size)))


def batched_moe(x, weight, bias, expert_num_tokens, out):
    num_experts, max_tokens, K = x.shape
    N = weight.shape[1]
    block_m, block_n, block_k, num_warps = _tile(max_tokens, K, x.element_size())
    block_n, block_k = _no_wider_than(N, block_n), _no_wider_than(K, block_k)
    tiles = num_experts * triton.cdiv(max_tokens, block_m) * triton.cdiv(N, block_n)
    _shared_tiles[(min(PROGRAMS, tiles),)](
        x,
        weight,
        bias,
        expert_num_tokens,
        out,
        num_experts,
        max_tokens,
        N,
        K,
        HAS_BIAS=bias is not None,
        EXPERTS=triton.next_power_of_2(num_experts),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=num_warps,
        # On AMD two stages are one buffer in 64 KiB of LDS.
        num_stages=2 if torch.version.hip else 3,
    )
