"""expect: wrong_result in heldout-15. Overflow: the rows of comb are exponentiated without their maximum, so that saturated rows become NaN."""

import torch
import triton
import triton.language as tl


@triton.jit
def compute_mixes(
    x_ptr, weight_ptr, mixes_ptr, num_tokens, width, eps, TOKENS: tl.constexpr, MIXES: tl.constexpr, BLOCK: tl.constexpr
):
    """mixes: (num_tokens, 24), padded to whole tiles. Two parts of 16 bits of the weight are better than TF32."""
    tokens = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    rows = tl.arange(0, MIXES)
    acc = tl.zeros((TOKENS, MIXES), tl.float32)
    squares = tl.zeros((TOKENS,), tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x_mask = (tokens < num_tokens)[:, None] & (columns < width)[None, :]
        x = tl.load(x_ptr + tokens[:, None] * width + columns[None, :], mask=x_mask, other=0.0)
        weight_mask = (columns < width)[:, None] & (rows < 24)[None, :]
        weight = tl.load(weight_ptr + rows[None, :] * width + columns[:, None], mask=weight_mask, other=0.0)
        coarse = weight.to(x.dtype)
        fine = (weight - coarse.to(tl.float32)).to(x.dtype)
        acc += tl.dot(x, coarse)
        acc += tl.dot(x, fine)
        wide = x.to(tl.float32)
        squares += tl.sum(wide * wide, axis=1)
    mixes = acc / tl.sqrt(squares / width + eps)[:, None]
    tl.store(mixes_ptr + tokens[:, None] * 24 + rows[None, :], mixes, mask=(rows < 24)[None, :])


@triton.jit
def mix_streams(
    x_ptr,
    mixes_ptr,
    scale_ptr,
    bias_ptr,
    y_ptr,
    post_ptr,
    comb_ptr,
    hidden,
    sinkhorn_eps,
    num_iters,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    stream = tl.arange(0, 4)
    pre = tl.load(mixes_ptr + token * 24 + stream) * tl.load(scale_ptr) + tl.load(bias_ptr + stream)
    pre = tl.sigmoid(pre) + sinkhorn_eps
    post = tl.load(mixes_ptr + token * 24 + 4 + stream) * tl.load(scale_ptr + 1) + tl.load(bias_ptr + 4 + stream)
    tl.store(post_ptr + token * 4 + stream, 2.0 * tl.sigmoid(post))
    places = stream[:, None] * 4 + stream[None, :]
    comb = tl.load(mixes_ptr + token * 24 + 8 + places) * tl.load(scale_ptr + 2) + tl.load(bias_ptr + 8 + places)
    comb = tl.exp(comb)
    comb = comb / tl.sum(comb, axis=1)[:, None] + sinkhorn_eps
    comb = comb / (tl.sum(comb, axis=0)[None, :] + sinkhorn_eps)
    for _ in range(1, num_iters):
        comb = comb / (tl.sum(comb, axis=1)[:, None] + sinkhorn_eps)
        comb = comb / (tl.sum(comb, axis=0)[None, :] + sinkhorn_eps)
    tl.store(comb_ptr + token * 16 + places, comb)
    for start in range(0, hidden, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x_ptrs = x_ptr + (token * 4 + stream[:, None]) * hidden + columns[None, :]
        x = tl.load(x_ptrs, mask=(columns < hidden)[None, :], other=0.0).to(tl.float32)
        y = tl.sum(x * pre[:, None], axis=0)
        tl.store(y_ptr + token * hidden + columns, y.to(y_ptr.dtype.element_ty), mask=columns < hidden)


def mhc_pre(x, weight, scale, bias, eps, sinkhorn_eps, num_iters, y, post, comb):
    num_tokens, _, hidden = x.shape
    tiles = triton.cdiv(num_tokens, 16)
    mixes = torch.empty((tiles * 16, 24), dtype=torch.float32, device=x.device)
    compute_mixes[(tiles,)](x, weight, mixes, num_tokens, 4 * hidden, eps, TOKENS=16, MIXES=32, BLOCK=64)
    mix_streams[(num_tokens,)](x, mixes, scale, bias, y, post, comb, hidden, sinkhorn_eps, num_iters, BLOCK=512)
