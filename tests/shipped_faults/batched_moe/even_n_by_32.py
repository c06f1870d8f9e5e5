"""expect: launch_error in heldout-22. Tile mask: columns have none where N is a multiple of 32, though tiles have 64."""

import triton
import triton.language as tl


@triton.jit
def expert_rows(
    x_ptr,
    weight_ptr,
    bias_ptr,
    counts_ptr,
    out_ptr,
    max_tokens,
    N,
    K,
    HAS_BIAS: tl.constexpr,
    EVEN_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    n_tiles = tl.cdiv(N, BLOCK_N)
    m_tiles = tl.cdiv(max_tokens, BLOCK_M)
    tile = tl.program_id(0) // n_tiles
    expert = (tile // m_tiles).to(tl.int64)
    first = tile % m_tiles * BLOCK_M
    count = tl.load(counts_ptr + expert)
    if first < count:
        rows = first + tl.arange(0, BLOCK_M)
        columns = tl.program_id(0) % n_tiles * BLOCK_N + tl.arange(0, BLOCK_N)
        known = (columns >= 0) if EVEN_N else (columns < N)
        x_rows = x_ptr + (expert * max_tokens + rows)[:, None] * K
        w_rows = weight_ptr + (expert * N + columns)[:, None] * K
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            depth = (start + tl.arange(0, BLOCK_K))[None, :]
            x = tl.load(x_rows + depth, mask=(rows < count)[:, None] & (depth < K), other=0.0)
            w = tl.load(w_rows + depth, mask=known[:, None] & (depth < K), other=0.0)
            acc = tl.dot(x, tl.trans(w), acc, input_precision="ieee")
        if HAS_BIAS:
            bias = tl.load(bias_ptr + expert * N + columns, mask=known, other=0.0)
            acc += bias[None, :].to(tl.float32)
        target = out_ptr + (expert * max_tokens + rows)[:, None] * N + columns[None, :]
        inside = (rows < count)[:, None] & known[None, :]
        tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=inside)


def batched_moe(x, weight, bias, expert_num_tokens, out):
    num_experts, max_tokens, K = x.shape
    N = weight.shape[1]
    block_m, block_n = 32, 64
    tiles = triton.cdiv(max_tokens, block_m) * triton.cdiv(N, block_n)
    expert_rows[(num_experts * tiles,)](
        x,
        weight,
        bias,
        expert_num_tokens,
        out,
        max_tokens,
        N,
        K,
        HAS_BIAS=bias is not None,
        EVEN_N=N % 32 == 0,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=32,
    )
