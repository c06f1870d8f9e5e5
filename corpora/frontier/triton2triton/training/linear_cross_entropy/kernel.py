"""Linear cross entropy in chunks of tokens: logits of a chunk, their gradient, and two products that add it up."""

import torch
import triton
import triton.language as tl


@triton.jit
def count_targets(targets_ptr, count_ptr, num_tokens, ignore_index, BLOCK: tl.constexpr):
    counted = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, num_tokens, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        targets = tl.load(targets_ptr + tokens, mask=tokens < num_tokens, other=ignore_index)
        counted += (targets != ignore_index).to(tl.int32)
    tl.store(count_ptr, tl.maximum(tl.sum(counted, axis=0), 1))


@triton.jit
def multiply(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    a_row,
    a_column,
    b_row,
    b_column,
    ADD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out (M, N) = a (M, K) @ b (K, N), with ADD added to what is there."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_rows, in_columns = (rows < M)[:, None], (columns < N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + rows[:, None] * a_row + depth[None, :] * a_column
        b_ptrs = b_ptr + depth[:, None] * b_row + columns[None, :] * b_column
        a = tl.load(a_ptrs, mask=in_rows & (depth < K)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_columns & (depth < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    if ADD:
        acc += tl.load(out_ptrs, mask=in_rows & in_columns, other=0.0)
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_rows & in_columns)


@triton.jit
def differentiate(logits_ptr, targets_ptr, count_ptr, losses_ptr, d_ptr, vocab_size, ignore_index, BLOCK: tl.constexpr):
    """The loss of a token and the gradient of its logits."""
    row = tl.program_id(0)
    target = tl.load(targets_ptr + row)
    counts = target != ignore_index
    count = tl.load(count_ptr).to(tl.float32)
    logits_ptr += row * vocab_size
    greatest = -float("inf")
    total = 0.0
    for start in range(0, vocab_size, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        logits = tl.load(logits_ptr + columns, mask=columns < vocab_size, other=-float("inf"))
        higher = tl.maximum(greatest, tl.max(logits, axis=0))
        total = total * tl.exp(greatest - higher) + tl.sum(tl.exp(logits - higher), axis=0)
        greatest = higher
    lse = greatest + tl.log(total)
    own = tl.load(logits_ptr + target, mask=counts, other=0.0)
    tl.store(losses_ptr + row, tl.where(counts, (lse - own) / count, 0.0))
    for start in range(0, vocab_size, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        logits = tl.load(logits_ptr + columns, mask=columns < vocab_size, other=0.0)
        d = (tl.exp(logits - lse) - tl.where(columns == target, 1.0, 0.0)) / count
        d = tl.where(counts, d, 0.0)
        tl.store(d_ptr + row * vocab_size + columns, d.to(d_ptr.dtype.element_ty), mask=columns < vocab_size)


@triton.jit
def add_losses(losses_ptr, loss_ptr, num_tokens, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, num_tokens, BLOCK):
        tokens = start + tl.arange(0, BLOCK)
        total += tl.load(losses_ptr + tokens, mask=tokens < num_tokens, other=0.0)
    tl.store(loss_ptr, tl.sum(total, axis=0))


@triton.jit
def round_sums(sums_ptr, out_ptr, size, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.load(sums_ptr + places, mask=places < size, other=0.0)
    tl.store(out_ptr + places, sums.to(out_ptr.dtype.element_ty), mask=places < size)


def _multiply(a, b, out, M, N, K, a_strides, b_strides, add=False):
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    multiply[grid](a, b, out, M, N, K, *a_strides, *b_strides, ADD=add, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)


def linear_cross_entropy(x, weight, targets, ignore_index, loss, grad_x, grad_weight):
    num_tokens, hidden = x.shape
    vocab_size = weight.shape[0]
    chunk = min(num_tokens, 512)
    count = torch.empty((1,), dtype=torch.int32, device=x.device)
    losses = torch.empty((num_tokens,), dtype=torch.float32, device=x.device)
    logits = torch.empty((chunk, vocab_size), dtype=torch.float32, device=x.device)
    d = torch.empty((chunk, vocab_size), dtype=x.dtype, device=x.device)
    sums = torch.empty((vocab_size, hidden), dtype=torch.float32, device=x.device)
    count_targets[(1,)](targets, count, num_tokens, ignore_index, BLOCK=1024)
    for first in range(0, num_tokens, chunk):
        size = min(chunk, num_tokens - first)
        rows, classes = x[first : first + size], targets[first : first + size]
        _multiply(rows, weight, logits, size, vocab_size, hidden, (hidden, 1), (1, hidden))
        differentiate[(size,)](logits, classes, count, losses[first:], d, vocab_size, ignore_index, BLOCK=1024)
        _multiply(d, weight, grad_x[first : first + size], size, hidden, vocab_size, (vocab_size, 1), (hidden, 1))
        _multiply(d, rows, sums, vocab_size, hidden, size, (1, vocab_size), (hidden, 1), add=first > 0)
    add_losses[(1,)](losses, loss, num_tokens, BLOCK=1024)
    round_sums[(triton.cdiv(sums.numel(), 1024),)](sums, grad_weight, sums.numel(), BLOCK=1024)
