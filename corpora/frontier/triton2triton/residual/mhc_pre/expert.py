"""mHC before a layer, with the product split along its sum: every part of it has tokens and columns of its own.

64 tokens share a tile of the weight, and the parts of the sum are enough programs for few tokens as well. The second
kernel takes the last tokens first: their streams are those that the first kernel left in the L2 cache.
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 528
RESULTS = 32
"""of a token and part: 24 products, the sum of squares in place 24, padding"""


@triton.jit
def _sum_part(
    x_ptr,
    weight_ptr,
    parts_ptr,
    num_tokens,
    width,
    part_width,
    TOKENS: tl.constexpr,
    RESULTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    tokens = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    part = tl.program_id(1)
    rows = tl.arange(0, RESULTS)
    real = tokens < num_tokens
    acc = tl.zeros((TOKENS, RESULTS), tl.float32)
    squares = tl.zeros((TOKENS,), tl.float32)
    first = part * part_width
    last = tl.minimum(first + part_width, width)
    for start in range(first, last, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < last
        x = tl.load(x_ptr + tokens[:, None] * width + columns[None, :], mask=real[:, None] & inside[None, :], other=0.0)
        weight = tl.load(
            weight_ptr + rows[:, None] * width + columns[None, :],
            mask=(rows < 24)[:, None] & inside[None, :],
            other=0.0,
        )
        coarse = weight.to(x.dtype)
        fine = (weight - coarse.to(tl.float32)).to(x.dtype)
        acc = tl.dot(x, coarse.T, acc)
        acc = tl.dot(x, fine.T, acc)
        wide = x.to(tl.float32)
        squares += tl.sum(wide * wide, axis=1)
    results = tl.where(rows[None, :] == 24, squares[:, None], acc)
    out = (part * num_tokens + tokens)[:, None] * RESULTS + rows[None, :]
    tl.store(parts_ptr + out, results, mask=real[:, None])


@triton.jit
def _mix(
    x_ptr,
    parts_ptr,
    scale_ptr,
    bias_ptr,
    y_ptr,
    post_ptr,
    comb_ptr,
    num_tokens,
    hidden,
    parts,
    eps,
    sinkhorn_eps,
    num_iters,
    RESULTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = (num_tokens - 1 - tl.program_id(0)).to(tl.int64)
    stream = tl.arange(0, 4)
    places = 8 + stream[:, None] * 4 + stream[None, :]
    pre = tl.zeros((4,), tl.float32)
    squares = 0.0
    for part in range(parts):
        row_ptr = parts_ptr + (part * num_tokens + token) * RESULTS
        pre += tl.load(row_ptr + stream)
        squares += tl.load(row_ptr + 24)
    factor = tl.rsqrt(squares / (4 * hidden) + eps)
    pre = tl.sigmoid(pre * factor * tl.load(scale_ptr) + tl.load(bias_ptr + stream)) + sinkhorn_eps
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < hidden
    y = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(4):
        x = tl.load(x_ptr + (token * 4 + i) * hidden + columns, mask=inside, other=0.0)
        y += tl.sum(tl.where(stream == i, pre, 0.0), axis=0) * x.to(tl.float32)
    tl.store(y_ptr + token * hidden + columns, y.to(y_ptr.dtype.element_ty), mask=inside)
    if tl.program_id(1) == 0:
        post = tl.zeros((4,), tl.float32)
        comb = tl.zeros((4, 4), tl.float32)
        for part in range(parts):
            row_ptr = parts_ptr + (part * num_tokens + token) * RESULTS
            post += tl.load(row_ptr + 4 + stream)
            comb += tl.load(row_ptr + places)
        post = post * factor * tl.load(scale_ptr + 1) + tl.load(bias_ptr + 4 + stream)
        tl.store(post_ptr + token * 4 + stream, 2.0 * tl.sigmoid(post))
        comb = comb * factor * tl.load(scale_ptr + 2) + tl.load(bias_ptr + places)
        comb = tl.exp(comb - tl.max(comb, axis=1)[:, None])
        comb = comb / tl.sum(comb, axis=1)[:, None] + sinkhorn_eps
        comb = comb / (tl.sum(comb, axis=0)[None, :] + sinkhorn_eps)
        for _ in range(1, num_iters):
            comb = comb / (tl.sum(comb, axis=1)[:, None] + sinkhorn_eps)
            comb = comb / (tl.sum(comb, axis=0)[None, :] + sinkhorn_eps)
        tl.store(comb_ptr + token * 16 + places - 8, comb)


def mhc_pre(x, weight, scale, bias, eps, sinkhorn_eps, num_iters, y, post, comb):
    num_tokens, _, hidden = x.shape
    width = 4 * hidden
    tokens = 64 if num_tokens > 16 else 16
    tiles = triton.cdiv(num_tokens, tokens)
    parts = max(1, min(triton.cdiv(PROGRAMS, tiles), 32, width // 512))
    part_width = triton.cdiv(triton.cdiv(width, parts), 128) * 128
    parts = triton.cdiv(width, part_width)
    sums = torch.empty((parts, num_tokens, RESULTS), dtype=torch.float32, device=x.device)
    _sum_part[(tiles, parts)](
        x,
        weight,
        sums,
        num_tokens,
        width,
        part_width,
        TOKENS=tokens,
        RESULTS=RESULTS,
        BLOCK=128,
        num_warps=4,
        num_stages=3,
    )
    block = min(2048, triton.next_power_of_2(hidden))
    _mix[(num_tokens, triton.cdiv(hidden, block))](
        x,
        sums,
        scale,
        bias,
        y,
        post,
        comb,
        num_tokens,
        hidden,
        parts,
        eps,
        sinkhorn_eps,
        num_iters,
        RESULTS=RESULTS,
        BLOCK=block,
        num_warps=4,
    )
